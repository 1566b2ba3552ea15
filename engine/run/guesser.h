// Guesses at the tokens that follow a text, without a model: a text often repeats a part of itself, as code, quotations
// and lists do. Prompt lookup decoding (Saxena 2023) is this method.
#pragma once

#include <cstdint>
#include <span>

namespace qsf {

/// Decides how many tokens are guessed from how many guesses were right.
class Guesser {
 public:
  /// Begins a text, with at most `most` guesses at a time.
  void begin(std::uint32_t most) {
    most_ = limit_ = most;
    least_ = kLeast;
  }
  /// Writes the tokens that followed the longest earlier occurrence of the last tokens, at most out.size(), and returns
  /// their number. Returns 0 if no earlier occurrence is long enough. O(tokens).
  std::uint32_t guess(std::span<const std::uint32_t> tokens, std::span<std::uint32_t> out) const;
  /// Takes the outcome of a pass: `right` of its guesses were the tokens of the text. `all`: no guess was wrong.
  void judge(std::uint32_t right, bool all);

 private:
  static constexpr std::uint32_t kLeast = 2, kMostLeast = 6;  // tokens
  std::uint32_t most_ = 0, limit_ = 0;
  std::uint32_t least_ = kLeast;  // tokens of the shortest occurrence that is trusted
};

}  // namespace qsf
