// Guesses at the tokens that follow a text. A text often repeats a part of itself, as code, quotations and lists do:
// prompt lookup decoding (Saxena 2023) guesses that without a model. A host may guess by a second model instead, or the
// session by the first layers of its own.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/run/guesses.h"

namespace qsf {

/// Decides how many tokens are guessed, by the share of right guesses and the cost of a guess.
class Guesser {
 public:
  /// Begins a text, with at most `most` guesses at a time. `cost` is the work of a guess and of its column over that of
  /// a pass without guesses. Less than that share of right guesses saves nothing, and the guesser rests. With a cost of
  /// 0 it never does.
  void begin(std::uint32_t most, GuessSource source = GuessSource::text, float cost = 0);
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
  /// Writes guesses to `out`, the memory after the text's tokens, at most out.size(), and returns their number.
  std::uint32_t guess(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const;
  /// Takes the outcome of a pass, whose text has `n_tokens` now: `right` of its guesses were the tokens of the text.
  /// `all`: no guess was wrong.
  void judge(std::size_t n_tokens, std::uint32_t right, bool all);

 private:
  std::uint32_t repeat(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const;
  std::uint32_t given(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const;

  void trust();
  void weigh(std::size_t n_tokens, std::uint32_t right, bool all);

  static constexpr std::uint32_t kLeast = 2, kMostLeast = 6;              // tokens
  static constexpr std::uint32_t kShortestRest = 16, kLongestRest = 256;  // tokens, and passes between two
  std::uint32_t most_ = 0, limit_ = 0;
  std::uint32_t least_ = kLeast;  // tokens of the shortest occurrence that is trusted
  GuessSource source_ = GuessSource::text;
  std::uint32_t n_given_ = 0;
  std::size_t given_after_ = 0;  // tokens of the text that they follow
  float cost_ = 0;
  float right_ = 0, judged_ = 0;  // guesses, of which those of earlier passes count less
  std::uint32_t n_passes_ = 0;    // since the last rest
  std::uint32_t rest_ = 0;        // tokens of the last rest; the next is longer if few passes were between them
  std::size_t rests_until_ = 0;   // tokens of the text
};

}  // namespace qsf
