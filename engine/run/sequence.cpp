#include "run/sequence.h"

#include <algorithm>

#include "qsf/base/try.h"
#include "run/model.h"

namespace qsf {

/// Writes the prompt's tokens behind those that are known, and gives how many.
Result<std::uint32_t> Sequence::read_prompt(Model& model, const Prompt& prompt) {
  const std::span<std::uint32_t> out = room_.subspan(n_tokens_);
  const Config& config = model.config;
  if (!prompt.tokens.empty()) {
    if (prompt.tokens.size() > out.size()) {
      return make_error(ErrorCode::context_full, "{} tokens do not fit in the {} that are left of a context of {}",
                        prompt.tokens.size(), out.size(), room_.size());
    }
    for (const std::uint32_t id : prompt.tokens) {
      if (id < config.vocab_size) continue;
      return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", id, config.vocab_size);
    }
    std::ranges::copy(prompt.tokens, out.begin());
    return static_cast<std::uint32_t>(prompt.tokens.size());
  }
  if (!model.tokenizer.open_for_use()) {
    return make_error(ErrorCode::bad_text, "the file has no tokenizer: give token ids instead of text");
  }
  const bool begins = n_tokens_ == 0 && prompt.add_bos && model.tokenizer.add_bos() && config.bos < config.vocab_size;
  const std::uint32_t added = begins && !out.empty() ? 1 : 0;
  if (added != 0) out[0] = config.bos;
  QSF_LET(n, model.tokenizer.encode(prompt.text, prompt.special, out.subspan(added), model.tokenizer_scratch));
  const std::uint32_t eos = model.tables.header.eos;
  const bool ends = prompt.add_bos && model.tokenizer.add_eos() && eos < config.vocab_size;
  if (!ends || added + n == out.size()) return added + n;
  out[added + n] = eos;
  return added + n + 1;
}

Status Sequence::start(Model& model, const Prompt& prompt) {
  if (prompt.all_logits && !model.options.all_logits) {
    return make_error(ErrorCode::bad_argument, "all logits were not asked for when the model was opened");
  }
  QSF_TRY(check(prompt.sampler));
  if (prompt.end_tokens.size() > end_tokens_.size()) {
    return make_error(ErrorCode::bad_argument, "{} end tokens were given, {} are possible", prompt.end_tokens.size(),
                      end_tokens_.size());
  }
  // What was known but not fed, such as the last sampled token, is fed first.
  QSF_LET(added, read_prompt(model, prompt));
  if (n_tokens_ + added == 0) return make_error(ErrorCode::bad_argument, "the prompt is empty");
  if (n_tokens_ + added == position_) {
    return make_error(ErrorCode::bad_argument, "the prompt adds nothing to the sequence");
  }
  QSF_TRY(text_.begin(prompt.stops));
  n_tokens_ += added;
  n_prompt_ = n_tokens_ - position_;
  max_tokens_ = prompt.max_tokens;
  n_generated_ = 0;
  logits_from_ = prompt.all_logits ? prompt.logits_from : kNoLogits;
  hash_logits_ = prompt.hash_logits;
  ignore_eos_ = prompt.ignore_eos;
  std::ranges::copy(prompt.end_tokens, end_tokens_.begin());
  n_end_tokens_ = static_cast<std::uint32_t>(prompt.end_tokens.size());
  end_ = End::none;
  piece_ = {};
  logits_sha_ = {};
  sampler_.begin(prompt.sampler, *model.kernels, model.candidates);
  state_ = State::feeding;
  return {};
}

void Sequence::stop(Lanes& lanes, End why) {
  if (state_ == State::idle) return;
  position_ = lanes.rewind(id_, position_);
  end_ = why;
  state_ = State::idle;
}

Status Sequence::rewind(Lanes& lanes, std::uint32_t n) {
  if (n > n_tokens_) return make_error(ErrorCode::bad_argument, "the sequence has {} tokens, not {}", n_tokens_, n);
  n_tokens_ = n;
  position_ = lanes.rewind(id_, std::min(position_, n));
  return {};
}

std::uint32_t Sequence::enter(std::span<Column> room, std::uint32_t first_row) {
  n_columns_ = std::min(n_unfed(), static_cast<std::uint32_t>(room.size()));
  first_row_ = first_row;
  n_rows_ = 0;
  for (std::uint32_t i = 0; i < n_columns_; ++i) {
    const std::uint32_t position = position_ + i;
    const bool wants_logits = position >= logits_from_ || position + 1 == n_tokens_;
    n_rows_ += wants_logits ? 1 : 0;
    room[i] = {room_[position], position, id_, wants_logits};
  }
  if (n_columns_ > 0) state_ = State::passing;
  return n_columns_;
}

void Sequence::leave(Lanes& lanes, std::span<const float> logits, std::uint32_t vocab_size) {
  position_ += n_columns_;
  // What comes next is an answer, which a later turn may go back behind.
  lanes.commit(id_, position_, n_unfed() == 0 && n_generated_ == 0);
  if (hash_logits_) {
    const std::size_t row = vocab_size;
    logits_sha_.update(std::as_bytes(logits.subspan(first_row_ * row, n_rows_ * row)));
  }
  state_ = position_ > logits_from_ ? State::showing : n_unfed() == 0 ? State::choosing : State::feeding;
}

Step Sequence::next(Model& model) {
  switch (state_) {
    case State::showing:
      state_ = n_unfed() == 0 ? State::choosing : State::feeding;
      return Step::logits;
    case State::choosing:
      return choose(model);
    case State::ending:
      return finish(text_.stopped() ? End::stop : n_generated_ == max_tokens_ ? End::length : End::context);
    case State::idle:
    case State::feeding:
    case State::passing:
      break;
  }
  return Step::working;
}

/// Samples from the last row; the token is to be fed unless the generation ends with it.
Step Sequence::choose(Model& model) {
  if (n_generated_ == max_tokens_) return finish(End::length);
  if (position_ == room_.size()) return finish(End::context);
  const std::span<float> rows = model.pass.logits();
  const std::size_t vocab_size = model.config.vocab_size;
  token_ = sampler_.sample(rows.subspan((first_row_ + n_rows_ - 1) * vocab_size, vocab_size), tokens());
  room_[n_tokens_++] = token_;
  ++n_generated_;
  const auto ends = end_tokens_.begin() + n_end_tokens_;
  const bool ended = model.config.is_end(token_) || std::find(end_tokens_.begin(), ends, token_) != ends;
  if (ended && !ignore_eos_) return finish(End::eos);
  piece_ = text_.push(model.tokenizer.open_for_use() ? model.tokenizer.bytes(token_) : std::string_view{});
  const bool full = n_generated_ == max_tokens_ || position_ == room_.size();
  state_ = text_.stopped() || full ? State::ending : State::feeding;
  return Step::token;
}

Step Sequence::finish(End why) {
  end_ = why;
  piece_ = text_.stopped() ? std::string_view{} : text_.finish();
  state_ = State::idle;
  return Step::done;
}

std::string_view Sequence::logits_hash() {
  logits_hash_ = hex(logits_sha_.digest());
  return logits_hash_.data();
}

}  // namespace qsf
