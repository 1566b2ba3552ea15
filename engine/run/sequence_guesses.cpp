// Guesses at the tokens of a sequence: who makes them, and the columns that a pass needs for them.
#include <algorithm>

#include "run/sequence.h"

namespace qsf {

/// Returns the number of tokens that the next pass may guess as far as the sequence is concerned.
std::uint32_t Sequence::most_guesses() const {
  if (embeds_ || n_generated_ == 0 || logits_from_ != kNoLogits) return 0;
  return std::min(max_tokens_ - n_generated_ - 1, static_cast<std::uint32_t>(room_.size()) - n_tokens_);
}

std::uint32_t Sequence::guesses_wanted(GuessSource from) const {
  const bool before_pass = state_ == State::settling || state_ == State::feeding;
  const bool is_expected = expected_ != nullptr && expected_->n != 0;
  return before_pass && !is_expected ? std::min(guesser_.wanted(from, n_tokens_), most_guesses()) : 0;
}

void Sequence::give(std::span<const std::uint32_t> guesses) {
  const std::uint32_t wanted = guesses_wanted(GuessSource::host);
  if (wanted == 0) return;
  guesses = guesses.first(std::min<std::size_t>(guesses.size(), wanted));
  std::uint32_t n = 0;
  for (; n < guesses.size() && guesses[n] < vocab_size_; ++n) room_[n_tokens_ + n] = guesses[n];
  guesser_.give(n_tokens_, n);
}

/// Returns the column of the last token, known or guessed, whose logits guess the next one; nothing if that many
/// guesses are not wanted, or the hidden state that a guess follows from is gone.
std::optional<Column> Sequence::guessing(std::uint32_t most) const {
  const GuessSource from = guesser_.source();
  const std::uint32_t n = guesser_.n_given(n_tokens_);
  if (from != GuessSource::layers && from != GuessSource::head) return {};
  if (n >= std::min(guesses_wanted(from), most)) return {};
  const std::uint32_t last = n_tokens_ - 1;
  Column column{.token = room_[last + n], .position = last + n, .sequence = id_, .wants_logits = true, .guess = n != 0};
  if (from == GuessSource::layers) return column;
  const std::uint32_t of_known = last - 1 - kept_from_;  // its hidden state is that of the position before
  if (last == 0 || (n == 0 ? of_known >= n_kept_ : !guess_row_)) return {};
  --column.position;
  column.hidden_row = n == 0 ? kept_row_ + of_known : *guess_row_;
  return column;
}

std::uint32_t Sequence::enter_guesses(std::span<Column> room, std::uint32_t most, bool states) {
  guessed_at_ = changes_;
  if (guesser_.rests(n_tokens_)) {
    forget_hidden();
    return 0;
  }
  const std::optional<Column> guess = guessing(most);
  std::uint32_t n = 0;
  const std::uint32_t end = kept_from_ + n_kept_;
  for (std::uint32_t p = kept_from_; p < end && p + 1 < n_tokens_ && n < room.size(); ++p) {
    room[n++] = {room_[p + 1], p, id_, false, false, false, kept_row_ + (p - kept_from_)};
  }
  if (guess && states && guesser_.source() == GuessSource::layers) {
    for (std::uint32_t p = position_; p < guess->position && n < room.size(); ++p) {
      room[n++] = {.token = room_[p], .position = p, .sequence = id_, .guess = p >= n_tokens_};
    }
  }
  if (guess && n != 0) n -= room[n - 1].position == guess->position ? 1 : 0;
  if (guess && n < room.size()) room[n++] = *guess;
  forget_hidden();
  return n;
}

void Sequence::add_guess(std::uint32_t token, std::uint32_t column) {
  if (guessed_at_ != changes_) return;
  const std::uint32_t n = guesser_.n_given(n_tokens_);
  room_[n_tokens_ + n] = token;
  guesser_.give(n_tokens_, n + 1);
  guess_row_ = column;
}

void Sequence::keep_hidden(std::uint32_t column) {
  kept_from_ = position_;
  n_kept_ = embeds_ ? 0 : n_columns_ + n_guesses_;
  kept_row_ = column;
}

/// Writes guesses after the known tokens, and returns their number.
std::uint32_t Sequence::guess(std::uint32_t most) {
  const std::span<std::uint32_t> room = room_.first(n_tokens_ + most);
  std::uint32_t n = 0;
  if (expected_ != nullptr) {
    const std::uint32_t end = std::min({expected_->n, most, kMostGuesses});
    for (; n < end && expected_->ids[n] < vocab_size_; ++n) room[n_tokens_ + n] = expected_->ids[n];
  }
  expects_ = n != 0;
  return expects_ ? n : guesser_.guess(room, n_tokens_);
}

}  // namespace qsf
