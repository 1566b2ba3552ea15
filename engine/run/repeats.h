// Guesses from a text's own tokens. A text often repeats a part of itself, as code, quotations and lists do: prompt
// lookup decoding (Saxena 2023). New prose repeats single tokens, which are right often enough if a guess costs next to
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "qsf/run/guesses.h"

namespace qsf {

/// The work that a guess adds to a pass, over the work of a pass without guesses.
struct GuessCost {
  float each = 0;   // of the model that guesses, and of the guess's column
  float right = 0;  // of a right guess's column in the next pass, if that computes it again
};

/// The tokens and the work of a pass with guesses, if a guess counts only after right ones (Leviathan et al. 2023,
/// section 3.4).
struct GuessGain {
  float tokens = 1, work = 1, chance = 1;  // the chance is that of the last guess

  /// Adds a guess that is right in a `share` of such cases. Returns false, and adds nothing, if a token would take no
  /// less work than without it.
  bool add(float share, GuessCost cost);
};

/// The earlier occurrences of a text's last tokens, and how often the tokens after them were right.
class Repeats {
 public:
  /// Begins a text, with the usual shares of right guesses.
  void begin();
  /// Writes guesses to `room` after the text, its first `n_tokens`, at least one, and returns their number, at most
  /// kMostGuesses.
  /// Call it once for a pass. O(tokens) for each guess.
  std::uint32_t guess(std::span<std::uint32_t> room, std::size_t n_tokens, GuessCost cost);
  /// Takes the outcome of that pass: the first `right` guesses were right. `all`: no guess was wrong.
  void judge(std::uint32_t right, bool all);

 private:
  static constexpr std::size_t kKinds = 6;  // of guesses: lengths of the longest earlier occurrence, 1, 2, 4, ... to 32

  void count(std::size_t kind, bool right);

  std::array<float, kKinds> shares_{};              // of right guesses, by kind
  std::array<std::uint8_t, kMostGuesses> kinds_{};  // of the last guesses, or of the one that was not worth its cost
  std::uint32_t untried_ = 0;                       // that one, which counts as if it had been tried
  std::uint32_t untried_at_ = 0;                    // its position in the text; 0: there is none
};

}  // namespace qsf
