#include "run/sequence.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "qsf/base/finite.h"
#include "qsf/base/try.h"
#include "run/model.h"

namespace qsf {
namespace {

/// Gives the logits of all tokens outside of a set the value -infinity.
void exclude(std::span<const std::uint64_t> allowed, std::span<float> logits) {
  for (std::size_t w = 0; w < allowed.size(); ++w) {
    const std::span<float> part = logits.subspan(64 * w, std::min<std::size_t>(64, logits.size() - 64 * w));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if ((allowed[w] >> i & 1) == 0) part[i] = -std::numeric_limits<float>::infinity();
    }
  }
}

/// Returns the token of a set of one token, or nothing.
std::optional<std::uint32_t> only_of(std::span<const std::uint64_t> allowed, std::uint32_t vocab_size) {
  std::optional<std::uint32_t> found;
  for (std::size_t w = 0; w < allowed.size(); ++w) {
    const std::size_t n = std::min<std::size_t>(64, vocab_size - 64 * w);
    const std::uint64_t word = allowed[w] & (~std::uint64_t{0} >> (64 - n));
    if (word == 0) continue;
    if (found || !std::has_single_bit(word)) return {};
    found = static_cast<std::uint32_t>(64 * w) + static_cast<std::uint32_t>(std::countr_zero(word));
  }
  return found;
}

Status check_token(std::uint32_t id, std::uint32_t vocab_size) {
  if (id < vocab_size) return {};
  return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", id, vocab_size);
}

/// Checks that rows of `width` numbers, for the positions from `first` on, are finite.
Status check_rows(const char* what, std::span<const float> rows, std::size_t width, std::uint32_t first) {
  for (std::uint32_t i = 0; i * width < rows.size(); ++i) {
    if (all_finite(rows.subspan(i * width, width))) continue;
    return make_error(ErrorCode::not_finite,
                      "{} of position {} are not finite numbers: the model's weights are damaged or too large", what,
                      first + i);
  }
  return {};
}

}  // namespace

/// Writes the prompt's tokens to `out`, which is in the context's end, and returns their number. `begins`: they are the
/// first of the sequence.
Result<std::uint32_t> Sequence::read_prompt(Model& model, const Prompt& prompt, std::span<std::uint32_t> out,
                                            bool begins) {
  const Config& config = model.config;
  if (!prompt.tokens.empty()) {
    if (prompt.tokens.size() > out.size()) {
      const Error full =
          make_error(ErrorCode::context_full, "{} tokens do not fit in the {} that are left of a context of {}",
                     prompt.tokens.size(), out.size(), room_.size());
      return model.too_long(full.sentence);
    }
    for (const std::uint32_t id : prompt.tokens) QSF_TRY(check_token(id, config.vocab_size));
    std::ranges::copy(prompt.tokens, out.begin());
    return static_cast<std::uint32_t>(prompt.tokens.size());
  }
  if (!model.tokenizer.open_for_use()) {
    return make_error(ErrorCode::bad_text, "the file has no tokenizer: give token ids instead of text");
  }
  const Result<std::uint32_t> encoded =
      model.tokenizer.encode(prompt.text, prompt.special, out, model.tokenizer_scratch, {}, model.options.cancel,
                             begins && prompt.add_bos ? model.begin_token() : std::nullopt);
  if (!encoded && encoded.error().code == ErrorCode::context_full) {
    const Error full =
        make_error(ErrorCode::context_full, "{} in a context of {}", encoded.error().sentence, room_.size());
    return model.too_long(full.sentence);
  }
  if (!encoded) return encoded.error();
  const std::uint32_t n = *encoded;
  const std::optional<std::uint32_t> closing =
      prompt.add_bos ? model.closing_token(out.first(n), begins) : std::nullopt;
  if (closing && embeds_ && n == out.size()) {
    const Error full =
        make_error(ErrorCode::context_full, "{} tokens and the end token do not fit in a context of {}", n, out.size());
    return model.too_long(full.sentence);
  }
  if (!closing || n == out.size()) return n;
  out[n] = *closing;
  return n + 1;
}

Status Sequence::start(Model& model, const Prompt& prompt) {
  embeds_ = false;
  if (model.config.table.model.score != 0) {
    return make_error(ErrorCode::unsupported, "this model is a reranker: it scores pairs of texts, and makes no text");
  }
  if (model.config.table.model.headless != 0 || model.config.table.bidirectional()) {
    return make_error(ErrorCode::unsupported, "this model makes embeddings, not text: it has no output head");
  }
  if (prompt.all_logits && !model.options.all_logits) {
    return make_error(ErrorCode::bad_argument, "all logits were not asked for when the model was opened");
  }
  if (prompt.logprobs && !model.options.logprobs) {
    return make_error(ErrorCode::bad_argument,
                      "log-probabilities need a model that was opened with the option logprobs");
  }
  if (prompt.top_logprobs > kMostTopLogprobs) {
    return make_error(ErrorCode::bad_argument,
                      "the log-probabilities of {} tokens were asked for; at most {} are possible", prompt.top_logprobs,
                      kMostTopLogprobs);
  }
  QSF_TRY(check(prompt.sampler));
  for (const TokenBias& bias : prompt.sampler.logit_bias) QSF_TRY(check_token(bias.token, model.config.vocab_size));
  const std::size_t n_words = (model.config.vocab_size + 63) / 64;
  if (!prompt.allowed.empty() && prompt.allowed.size() != n_words) {
    return make_error(ErrorCode::bad_argument, "the set of allowed tokens has {} words of 64 bits, not {}",
                      prompt.allowed.size(), n_words);
  }
  if (prompt.end_tokens.size() > end_tokens_.size()) {
    return make_error(ErrorCode::bad_argument, "{} end tokens were given, {} are possible", prompt.end_tokens.size(),
                      end_tokens_.size());
  }
  const std::uint32_t before = prompt.anew ? 0 : n_tokens_;
  const std::span<std::uint32_t> out = prompt.anew ? model.prompt_room : room_.subspan(before);
  QSF_LET(added, read_prompt(model, prompt, out, before == 0));
  if (before + added == 0) return make_error(ErrorCode::bad_argument, "the prompt is empty");
  QSF_TRY(text_.begin(prompt.stops));
  ++changes_;
  n_reused_ = 0;
  if (prompt.anew) {
    begin_anew(model, out.first(added), prompt.all_logits ? prompt.logits_from : kNoLogits);
  } else {
    // Tokens that have not been fed, such as the last sampled one, are fed first. Logits follow from a token that is
    // fed: with no new one, as after rewind(), the last one is fed again.
    // A state after right guesses is that of an earlier position.
    position_ = model.memory.rewind(id_, position_ - (before + added == position_ ? 1 : 0));
    n_tokens_ += added;
  }
  n_prompt_ = n_tokens_ - position_ + n_reused_;
  max_tokens_ = prompt.max_tokens;
  n_generated_ = n_guessed_ = n_right_ = 0;
  guesser_.begin(model.guesses, model.guess_source(), model.guess_cost);
  logits_from_ = prompt.all_logits ? prompt.logits_from : kNoLogits;
  hash_logits_ = prompt.hash_logits;
  ignore_eos_ = prompt.ignore_eos;
  logprobs_ = prompt.logprobs;
  top_logprobs_ = prompt.top_logprobs;
  allowed_ = prompt.allowed;
  expected_ = prompt.expected;
  vocab_size_ = model.config.vocab_size;
  std::ranges::copy(prompt.end_tokens, end_tokens_.begin());
  n_end_tokens_ = static_cast<std::uint32_t>(prompt.end_tokens.size());
  end_ = End::none;
  piece_ = {};
  logits_sha_ = {};
  sampler_.begin(prompt.sampler, *model.kernels, model.candidates,
                 model.tokenizer.open_for_use() ? &model.tokenizer : nullptr);
  state_ = State::feeding;
  return {};
}

/// Makes the prompt the sequence's tokens. Those at the beginning that a sequence has computed are not fed again: at
/// most the first `most`, and not the last one, whose logits are wanted. Another sequence's memory is copied if it has
/// more of them.
void Sequence::begin_anew(Model& model, std::span<const std::uint32_t> prompt, std::uint32_t most) {
  const auto n = static_cast<std::uint32_t>(prompt.size());
  most = std::min(most, n - 1);
  const auto shared = [&](const Sequence& other) {
    const std::span<const std::uint32_t> fed = other.tokens().first(other.position_);
    const auto end = std::ranges::mismatch(fed, prompt).in1;
    const auto common = std::min(static_cast<std::uint32_t>(end - fed.begin()), most);
    return model.memory.reach(other.id_, common);
  };
  const Sequence* best = this;
  std::uint32_t reused = shared(*this);
  const auto is_of_this = [&](const Column& column) { return column.sequence == id_; };
  // A column in the pass still writes to this sequence's memory.
  if (!model.memory.chooses() && std::ranges::none_of(model.in_pass, is_of_this)) {
    for (const Sequence& other : model.sequences) {
      // Copying a token's memory takes a small part of the time that computing the token takes.
      constexpr std::uint32_t kCopiedInOne = 64;
      const std::uint32_t there = shared(other);
      if (there > reused + there / kCopiedInOne) {
        best = &other;
        reused = there;
      }
    }
  }
  if (best == this) {
    position_ = model.memory.rewind(id_, reused);
  } else {
    model.memory.copy(best->id_, id_, model.memory.snapshot(best->id_, reused));
    position_ = reused;
  }
  forget_hidden();
  std::ranges::copy(prompt, room_.begin());
  n_tokens_ = n;
  n_reused_ = position_;
}

void Sequence::clear(SequenceMemory& memory) {
  ++changes_;
  forget_hidden();
  n_tokens_ = 0;
  position_ = memory.rewind(id_, 0);
}

void Sequence::settle(std::uint32_t n_tokens, std::uint32_t position) {
  ++changes_;
  forget_hidden();
  n_tokens_ = n_tokens;
  position_ = position;
  n_prompt_ = n_generated_ = n_reused_ = 0;
  end_ = End::none;
}

void Sequence::stop(SequenceMemory& memory, End why) {
  if (state_ == State::idle) return;
  ++changes_;
  forget_hidden();
  n_guesses_ = 0;
  position_ = memory.rewind(id_, position_);
  end_ = why;
  state_ = State::idle;
}

Status Sequence::rewind(SequenceMemory& memory, std::uint32_t n) {
  if (n > n_tokens_) return make_error(ErrorCode::bad_argument, "the sequence has {} tokens, not {}", n_tokens_, n);
  ++changes_;
  forget_hidden();
  n_tokens_ = n;
  position_ = memory.rewind(id_, std::min(position_, n));
  return {};
}

std::uint32_t Sequence::enter(std::span<Column> room, std::uint32_t guesses, std::uint32_t first_row,
                              std::uint32_t first_hidden) {
  n_columns_ = std::min(n_unfed(), static_cast<std::uint32_t>(room.size()));
  if (embeds_ && one_pass_ && n_columns_ < n_unfed()) n_columns_ = 0;
  n_guesses_ = n_right_in_pass_ = 0;
  if (const std::uint32_t most = most_guesses(); most != 0 && n_columns_ == n_unfed()) {
    n_guesses_ = guess(std::min({guesses, static_cast<std::uint32_t>(room.size()) - n_columns_, most}));
    n_guessed_ += n_guesses_;
  }
  first_row_ = first_row;
  first_hidden_ = first_hidden;
  n_rows_ = n_hidden_ = 0;
  for (std::uint32_t i = 0; i < n_columns_; ++i) {
    const std::uint32_t position = position_ + i;
    const bool first = position == 0, last = position + 1 == n_tokens_;
    const bool pooled = pooling_ == Pooling::first ? first : pooling_ != Pooling::last || last;
    const bool wants_logits = !embeds_ && (position >= logits_from_ || last), wants_hidden = embeds_ && pooled;
    n_rows_ += wants_logits ? 1 : 0;
    n_hidden_ += wants_hidden ? 1 : 0;
    const bool second = embeds_ && position >= second_from_;
    room[i] = {room_[position], position, id_, wants_logits, wants_hidden, second};
  }
  for (std::uint32_t i = 0; i < n_guesses_; ++i) {
    const std::uint32_t position = n_tokens_ + i;
    room[n_columns_ + i] = {
        .token = room_[position], .position = position, .sequence = id_, .wants_logits = true, .guess = true};
  }
  if (n_columns_ > 0) {
    ++changes_;
    state_ = State::passing;
  }
  return n_columns_ + n_guesses_;
}

/// Checks logits and hidden states before anything samples, returns, hashes or pools them.
Status Sequence::check_given(const Model& model) const {
  // The rows belong to the last columns, except if only the first one is pooled.
  const std::uint32_t end = position_ + n_columns_;
  const std::size_t vocab_size = model.config.vocab_size;
  if (!embeds_) {
    return check_rows("the logits", model.pass.logits().subspan(first_row_ * vocab_size, n_rows_ * vocab_size),
                      vocab_size, end - n_rows_);
  }
  return check_rows("the hidden states", given(model), given_width(model),
                    pooling_ == Pooling::first ? 0 : end - n_hidden_);
}

Status Sequence::leave(Model& model) {
  QSF_TRY(check_given(model));
  ++changes_;
  const std::size_t vocab_size = model.config.vocab_size;
  for (std::uint32_t i = 0; i < n_guesses_; ++i) {
    // Such a guess is computed again if it is right, and is an error then.
    const std::size_t row = first_row_ + n_rows_ + i;
    if (!all_finite(model.pass.logits().subspan(row * vocab_size, vocab_size))) n_guesses_ = i;
  }
  position_ += n_columns_;
  // An answer follows, and a later turn of the conversation may return to this position.
  model.memory.commit(id_, position_, n_unfed() == 0 && n_generated_ == 0);
  if (embeds_) {
    const bool whole = n_unfed() == 0, scores = model.config.table.model.score != 0 && pooling_ != Pooling::none;
    if (!scores) add_hidden(given(model));
    if (scores && n_hidden_ != 0) finish_score(model, given(model).front());
    if (whole && !scores && pooling_ != Pooling::none) finish_pool();
    state_ = whole || pooling_ == Pooling::none ? State::showing : State::feeding;
    return {};
  }
  if (hash_logits_) {
    logits_sha_.update(std::as_bytes(model.pass.logits().subspan(first_row_ * vocab_size, n_rows_ * vocab_size)));
  }
  state_ = position_ > logits_from_ ? State::showing : n_unfed() == 0 ? State::choosing : State::feeding;
  return {};
}

Step Sequence::next(Model& model) {
  switch (state_) {
    case State::showing:
      if (embeds_) {
        state_ = n_unfed() == 0 ? State::ending : State::feeding;
        return Step::embedding;
      }
      state_ = n_unfed() == 0 ? State::choosing : State::feeding;
      return Step::logits;
    case State::choosing:
      return choose(model);
    case State::settling:
      return settle_token(model);
    case State::ending:
      if (embeds_) return finish(End::length);
      return finish(text_.stopped() ? End::stop : n_generated_ == max_tokens_ ? End::length : End::context);
    case State::idle:
    case State::feeding:
    case State::passing:
      break;
  }
  return Step::working;
}

/// Returns the state after a token that the generation continues with. A guessed token counts as fed, and its row of
/// logits is the next to sample from. Other guesses are forgotten. A recurrence is fed right ones again, because its
/// state is that before all guesses.
Sequence::State Sequence::go_on(Model& model, bool guessed) {
  if (!guessed) {
    if (n_guesses_ != 0 && !expects_) guesser_.judge(n_tokens_, n_right_in_pass_, false);
    n_guesses_ = 0;
    n_kept_ = std::min(n_kept_, position_ - kept_from_);
    position_ = model.memory.rewind(id_, position_);
    return State::settling;
  }
  ++position_;
  ++first_row_;
  --n_guesses_;
  ++n_right_;
  if (++n_right_in_pass_; n_guesses_ == 0 && !expects_) guesser_.judge(n_tokens_, n_right_in_pass_, true);
  if (hash_logits_) {
    const std::size_t vocab_size = model.config.vocab_size;
    logits_sha_.update(std::as_bytes(model.pass.logits().subspan(first_row_ * vocab_size, vocab_size)));
  }
  return State::choosing;
}

/// Returns the last row of logits that the sequence owns.
std::span<float> Sequence::row(Model& model) const {
  return model.pass.logits().subspan((first_row_ + n_rows_ - std::size_t{1}) * vocab_size_, vocab_size_);
}

Step Sequence::choose(Model& model) {
  if (n_generated_ == max_tokens_) return finish(End::length);
  if (position_ == room_.size()) return finish(End::context);
  model.logprobs.clear();
  if (logprobs_) model.logprobs.keep(row(model));
  exclude(allowed_, row(model));
  return sample(model);
}

/// Takes the only token that is allowed, if there is one, before the tokens in front of it are fed. No pass of other
/// sequences has replaced the row, because a pass begins when every settling sequence has become another one.
Step Sequence::settle_token(Model& model) {
  const bool needs_logits = logprobs_ || hash_logits_ || logits_from_ != kNoLogits;
  std::optional<std::uint32_t> only;
  if (!needs_logits && n_tokens_ < room_.size()) only = only_of(allowed_, vocab_size_);
  if (!only) {
    state_ = State::feeding;
    return Step::working;
  }
  std::ranges::fill(row(model), -std::numeric_limits<float>::infinity());
  row(model)[*only] = 0;
  return sample(model);  // which uses up as many random numbers as any logits of the token would
}

/// Samples from the last row. The token is fed next, unless the generation ends with it.
Step Sequence::sample(Model& model) {
  const std::optional<std::uint32_t> sampled = sampler_.sample(row(model), tokens());
  if (!sampled) return finish(End::stop);
  ++changes_;
  const bool guessed = n_guesses_ > 0 && room_[n_tokens_] == *sampled;
  if (logprobs_) model.logprobs.find(*sampled, top_logprobs_, model.candidates, *model.kernels);
  token_ = *sampled;
  room_[n_tokens_++] = token_;
  ++n_generated_;
  const auto ends = end_tokens_.begin() + n_end_tokens_;
  const bool ended = model.config.is_end(token_) || std::find(end_tokens_.begin(), ends, token_) != ends;
  if (ended && !ignore_eos_) return finish(End::eos);
  piece_ = text_.push(model.tokenizer.open_for_use() ? model.tokenizer.bytes(token_) : std::string_view{});
  const bool full = n_generated_ == max_tokens_ || position_ == room_.size();
  state_ = text_.stopped() || full ? State::ending : go_on(model, guessed);
  return Step::token;
}

Step Sequence::finish(End why) {
  end_ = why;
  n_guesses_ = 0;
  piece_ = embeds_ || text_.stopped() ? std::string_view{} : text_.finish();
  state_ = State::idle;
  return Step::done;
}

std::string_view Sequence::logits_hash() {
  logits_hash_ = hex(logits_sha_.digest());
  return logits_hash_.data();
}

}  // namespace qsf
