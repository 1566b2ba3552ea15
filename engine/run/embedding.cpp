// Embeddings and scores, which a sequence computes from the last hidden states of a text.
#include <algorithm>
#include <cmath>

#include "qsf/base/exact.h"
#include "qsf/base/try.h"
#include "run/model.h"
#include "run/sequence.h"

namespace qsf {
namespace {

/// Scales the vector to length 1, unless it is shorter than 1e-12 (as sentence-transformers' Normalize).
void normalize(std::span<float> vector) {
  constexpr double kLeast = 1e-12;
  double sum = 0;
  for (const float x : vector) sum += double{x} * double{x};
  const double length = std::max(std::sqrt(sum), kLeast);
  for (float& x : vector) x = static_cast<float>(double{x} / length);
}

}  // namespace

Status Sequence::embed(Model& model, const EmbedPrompt& prompt) {
  const ModelKind& kind = model.config.table.model;
  if (kind.score == 0 && prompt.second_from) {
    return make_error(ErrorCode::unsupported, "this model scores no pairs of texts: it is no reranker");
  }
  if (kind.score != 0 && !prompt.second_from && prompt.pooling != Pooling::none) {
    return make_error(ErrorCode::unsupported, "this model is a reranker: it scores pairs of texts, and embeds none");
  }
  if (prompt.second_from && (prompt.pooling || prompt.normalize)) {
    return make_error(ErrorCode::bad_argument, "a score has no pooling and no normalization of its own");
  }
  QSF_TRY(rewind(model.memory, 0));
  embeds_ = true;
  Prompt text;
  text.text = prompt.text;
  text.tokens = prompt.tokens;
  text.add_bos = prompt.add_bos;
  text.special = prompt.special;
  QSF_LET(added, read_prompt(model, text, room_, true));
  if (added == 0) return make_error(ErrorCode::bad_argument, "the text to embed is empty");
  pooling_ = prompt.pooling.value_or(kind.pooling);
  normalize_ = prompt.normalize.value_or(kind.normalize != 0 && pooling_ != Pooling::none);
  one_pass_ = model.config.table.bidirectional();
  second_from_ = prompt.second_from.value_or(added);
  n_tokens_ = n_prompt_ = added;
  n_generated_ = n_guessed_ = n_right_ = n_reused_ = max_tokens_ = 0;
  end_ = End::none;
  piece_ = {};
  shown_ = {};
  std::ranges::fill(pool_.sums, 0.0);
  state_ = State::feeding;
  return {};
}

/// Adds the rows of a pass, [n, dim], in the order of their positions, so that sums do not depend on the division into
/// passes.
void Sequence::add_hidden(std::span<float> rows) {
  const std::size_t dim = pool_.sums.size();
  if (pooling_ == Pooling::none) {
    for (std::size_t i = 0; normalize_ && i < rows.size(); i += dim) normalize(rows.subspan(i, dim));
    shown_ = rows;
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) pool_.sums[i % dim] += double{rows[i]};
}

void Sequence::finish_pool() {
  const double n = pooling_ == Pooling::mean ? n_tokens_ : 1;
  for (std::size_t i = 0; i < pool_.sums.size(); ++i) pool_.embedding[i] = static_cast<float>(pool_.sums[i] / n);
  if (normalize_) normalize(pool_.embedding);
  shown_ = pool_.embedding;
}

void Sequence::finish_score(const Model& model, float score) {
  const bool sigmoid = model.config.table.model.score == 2;
  pool_.embedding[0] = sigmoid ? static_cast<float>(1 / (1 + exact::exp(-double{score}))) : score;
  shown_ = pool_.embedding.first(1);
}

std::uint32_t Sequence::given_width(const Model& model) const {
  return pooling_ == Pooling::none ? model.config.dim : model.pass.pooled_width();
}

std::span<float> Sequence::given(const Model& model) const {
  const std::size_t width = given_width(model);
  const std::span<float> rows = pooling_ == Pooling::none ? model.pass.hidden() : model.pass.pooled();
  return rows.subspan(first_hidden_ * width, n_hidden_ * width);
}

}  // namespace qsf
