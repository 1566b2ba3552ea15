#include "qsf/run/draft.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "qsf/base/budget.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::uint32_t kUsualContext = 2048;

}  // namespace

DraftOpening::DraftOpening(std::uint64_t budget, const OpenOptions& model)
    : budget_(budget), wanted_(model.max_seq_len != 0 ? model.max_seq_len : kUsualContext) {
  options_.isa = model.isa;
  options_.sequences = model.sequences;
  options_.watched = model.watched;
  options_.text_bytes = 1;  // it has no conversations
}

void DraftOpening::planned(const Stats& plan) {
  is_last_ = options_.max_seq_len != 0;
  if (is_last_) {
    budget_ = std::min(plan.resident_budget, budget_ / 2);
  } else {
    options_.max_seq_len = std::min(wanted_, plan.model_seq_len);
  }
}

Error DraftOpening::refusal(const Error& error) const {
  if (!is_last_ || error.code != ErrorCode::budget_too_small) return error;
  return make_error(error.code, "in half of the budget: {}", error.sentence);
}

Status check_draft(const Session& model, const Session& draft) {
  const Stats of_model = model.stats(), of_draft = draft.stats();
  if (of_model.guesses == 0) {
    return make_error(ErrorCode::unsupported, "a draft model is of no use: {}", no_guesses(of_model.chunk));
  }
  const std::uint32_t n = std::max(of_model.vocab_size, of_draft.vocab_size);
  bool has_texts = false;
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::string_view here = model.detokenize(i, true), there = draft.detokenize(i, true);
    has_texts = has_texts || !here.empty();
    if (here == there) continue;
    return make_error(ErrorCode::bad_argument,
                      "the draft model has another vocabulary: its token {} is '{:.60}', and the model's is '{:.60}'",
                      i, there, here);
  }
  if (!has_texts && of_model.vocab_size != of_draft.vocab_size) {
    return make_error(ErrorCode::bad_argument,
                      "the draft model has another vocabulary: {} tokens, and the model {}; neither has texts",
                      of_draft.vocab_size, of_model.vocab_size);
  }
  return {};
}

std::array<Error, 2> draft_notes(const Session& model, const Session& draft) {
  const Stats of_model = model.stats(), of_draft = draft.stats();
  std::array<Error, 2> notes;
  std::size_t n = 0;
  const auto mib = [](std::uint64_t bytes) { return Budget::mib(bytes); };
  if (of_draft.weight_bytes >= of_model.weight_bytes) {
    notes[n++] = make_error(ErrorCode::none,
                            "the draft model is not smaller than the model: {:.2f} MiB of weights, and {:.2f}; its "
                            "guesses save no time",
                            mib(of_draft.weight_bytes), mib(of_model.weight_bytes));
  }
  if (of_draft.ring_slots != 0) {
    notes[n++] = make_error(ErrorCode::none,
                            "the draft model is streamed too, because its weights need {:.2f} MiB and half of the "
                            "budget is {:.2f} MiB",
                            Budget::enough_mib(of_draft.resident_budget), mib(of_model.budget / 2));
  }
  return notes;
}

DraftGuesses::DraftGuesses(Session& model, Session& draft) : model_(&model), draft_(&draft) {
  const Stats s = draft.stats();
  sequences_ = s.sequences;
  max_seq_len_ = s.max_seq_len;
  vocab_size_ = s.vocab_size;
  model.set_guess_work(draft.pass_work());
}

Result<bool> DraftGuesses::begin() {
  n_guesses_ = 0;
  const auto is_unknown = [this](std::uint32_t token) { return token >= vocab_size_; };
  for (std::uint32_t i = 0; i < sequences_; ++i) {
    const std::uint32_t wanted = model_->guesses_wanted(i);
    if (wanted == 0) continue;
    const std::span<const std::uint32_t> tokens = model_->tokens(i);
    if (tokens.size() >= max_seq_len_ || std::ranges::any_of(tokens, is_unknown)) {
      model_->guess({}, i);
      continue;
    }
    Prompt prompt;
    prompt.tokens = tokens;
    prompt.anew = true;
    prompt.max_tokens = std::min(wanted, max_seq_len_ - static_cast<std::uint32_t>(tokens.size()));
    prompt.ignore_eos = true;
    prompt.sampler.temperature = 0;
    QSF_TRY(draft_->start(prompt, i));
    sequence_ = i;
    n_tokens_ = tokens.size();
    return true;
  }
  return false;
}

bool DraftGuesses::take(Step step) {
  if (step == Step::token && n_guesses_ < guesses_.size()) guesses_[n_guesses_++] = draft_->token();
  if (step != Step::done && step != Step::ready) return false;
  // Another generation may have begun in a sequence whose draft was stopped.
  if (model_->tokens(sequence_).size() == n_tokens_) {
    model_->guess(std::span(guesses_).first(n_guesses_), sequence_);
  }
  return true;
}

}  // namespace qsf
