// The passes of a session: those of all layers, and those of the first layers or of the model's own one, which guess
// tokens.
#include <algorithm>

#include "qsf/base/try.h"
#include "run/session_impl.h"

namespace qsf {

/// Collects columns of every sequence that has tokens to feed: first sequences with one token, which decode, then the
/// others.
bool Session::Impl::begin_pass() {
  const auto n = static_cast<std::uint32_t>(model.sequences.size());
  std::uint32_t rows = 0, hidden = 0;
  n_columns = 0;
  std::uint32_t decoding = 0;
  auto free = static_cast<std::uint32_t>(model.columns.size());  // for guesses
  for (const Sequence& sequence : model.sequences) {
    if (!sequence.decodes()) continue;
    ++decoding;
    free -= std::min(free, sequence.n_unfed());
  }
  if (begin_guessing(decoding == 0 ? 0 : free / decoding)) return true;
  for (Sequence& sequence : model.sequences) sequence.forget_hidden();
  for (const bool prompts : {false, true}) {
    for (std::uint32_t i = 0; i < n; ++i) {
      Sequence& sequence = model.sequences[(turn + i) % n];
      if (sequence.state() != Sequence::State::feeding || sequence.decodes() == prompts) continue;
      const std::span<Column> room = model.columns.subspan(n_columns);
      const std::uint32_t entered = sequence.enter(room, std::min(model.guesses, free), rows, hidden);
      if (model.guesses_by_head && entered != 0) sequence.keep_hidden(n_columns);
      n_columns += entered;
      if (sequence.state() != Sequence::State::passing) continue;
      free -= sequence.n_guesses();
      rows += sequence.n_pass_rows();
      hidden += sequence.n_hidden();
      if (n_columns == model.columns.size()) break;
    }
    if (n_columns == model.columns.size()) break;
  }
  if (n_columns == 0) return false;
  turn = (turn + 1) % n;
  begin(model.config.n_layers);
  return true;
}

/// Begins a pass that guesses a token for every sequence that wants one, at most `most` in front of its next pass. What
/// a pass of the first layers writes to a sequence's memory, the next pass writes again.
bool Session::Impl::begin_guessing(std::uint32_t most) {
  if (model.guess_layers == 0 && !model.guesses_by_head) return false;
  n_columns = 0;
  for (Sequence& sequence : model.sequences) {
    n_columns += sequence.enter_guesses(model.columns.subspan(n_columns), most, model.memory.has_states());
  }
  guesses = n_columns != 0;
  if (guesses) begin(model.guess_layers);
  return guesses;
}

/// Begins a pass of the first `layers`, or, if that is 0, of the layer that guesses.
void Session::Impl::begin(std::uint32_t layers) {
  work = Work::embed;
  model.in_pass = model.columns.first(n_columns);
  layers != 0 ? model.pass.begin(model.in_pass, layers) : model.pass.begin_guesses(model.in_pass);
  in_pass = true;
}

void Session::Impl::drop_pass() {
  in_pass = guesses = false;
  model.in_pass = {};
}

Status Session::Impl::end_pass() {
  if (guesses) {
    const std::uint32_t vocab_size = model.config.vocab_size;
    const float* row = model.pass.logits().data();
    for (std::uint32_t i = 0; i < n_columns; ++i) {
      const Column& column = model.columns[i];
      if (!column.wants_logits) continue;
      model.sequences[column.sequence].add_guess(model.kernels->argmax(row, vocab_size), i);
      row += vocab_size;
    }
    drop_pass();
    return {};
  }
  drop_pass();
  for (Sequence& sequence : model.sequences) {
    if (sequence.state() == Sequence::State::passing) QSF_TRY(sequence.leave(model));
  }
  return {};
}

/// Stops a sequence. The pass continues while it has columns of other sequences, and computes the stopped one's in
/// vain.
void Session::Impl::stop(Sequence& sequence, End why) {
  sequence.stop(model.memory, why);
  const auto is_wanted = [&](const Column& column) {
    const Sequence& of = model.sequences[column.sequence];
    return of.state() == Sequence::State::passing || (guesses && !of.is_idle());
  };
  if (std::ranges::none_of(model.in_pass, is_wanted)) drop_pass();
}

}  // namespace qsf
