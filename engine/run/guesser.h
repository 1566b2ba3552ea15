// Guesses at the tokens that follow a text: from the text itself (repeats.h), by a second model of the host, or by
// layers of the session's own.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/run/guesses.h"
#include "run/repeats.h"

namespace qsf {

/// Decides how many tokens are guessed, by the share of right guesses and the cost of a guess.
class Guesser {
 public:
  /// Begins a text, with at most `most` guesses at a time. If too few of a model's guesses are right to save their
  /// cost, nothing is guessed for a while. If they cost nothing, their number follows the right ones.
  void begin(std::uint32_t most, GuessSource source, GuessCost cost);
  GuessSource source() const { return source_; }
  /// Whether nothing is guessed for a text of `n_tokens`, because earlier guesses cost more than they saved.
  bool rests(std::size_t n_tokens) const { return n_tokens < rests_until_; }
  /// Returns the number of tokens that a source could give for a text of `n_tokens`: 0 for any other source than
  /// begin()'s, once the host has given them, and at rest.
  std::uint32_t wanted(GuessSource from, std::size_t n_tokens) const {
    const bool has_given = source_ == GuessSource::host && given_after_ == n_tokens;
    return source_ == from && !has_given && !rests(n_tokens) ? limit_ : 0;
  }
  /// Returns the number of guesses that were given for a text of `n_tokens`.
  std::uint32_t n_given(std::size_t n_tokens) const { return given_after_ == n_tokens ? n_given_ : 0; }
  /// Takes guesses for a text of `n_tokens`, the first `n` tokens in the memory after it.
  void give(std::size_t n_tokens, std::uint32_t n) {
    given_after_ = n_tokens;
    n_given_ = n;
  }
  /// Leaves guesses in `room` after the text, its first `n_tokens`, and returns their number.
  std::uint32_t guess(std::span<std::uint32_t> room, std::size_t n_tokens);
  /// Takes the outcome of a pass, whose text has `n_tokens` now: `right` of its guesses were the tokens of the text.
  /// `all`: no guess was wrong.
  void judge(std::size_t n_tokens, std::uint32_t right, bool all);

 private:
  void trust();
  void weigh(std::size_t n_tokens, std::uint32_t right, bool all);

  static constexpr std::uint32_t kShortestRest = 16, kLongestRest = 256;  // tokens, and passes between two
  std::uint32_t most_ = 0, limit_ = 0;
  GuessSource source_ = GuessSource::text;
  std::uint32_t n_given_ = 0;
  std::size_t given_after_ = 0;  // tokens of the text that they follow
  GuessCost cost_;
  Repeats repeats_;
  float right_ = 0, judged_ = 0;  // guesses, of which those of earlier passes count less
  std::uint32_t n_passes_ = 0;    // since the last rest
  std::uint32_t rest_ = 0;        // tokens of the last rest; the next is longer if few passes were between them
  std::size_t rests_until_ = 0;   // tokens of the text
};

}  // namespace qsf
