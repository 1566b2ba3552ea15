// Guessed tokens: their limit, and those that a host expects.
#pragma once

#include <array>
#include <cstdint>

namespace qsf {

/// The most tokens that a pass guesses ahead: a window's ring lets a sequence go back over this many positions.
inline constexpr std::uint32_t kMostGuesses = 15;

/// The first `n` tokens are expected next. Those after one that is not in the vocabulary are not taken.
struct ExpectedTokens {
  std::array<std::uint32_t, kMostGuesses> ids{};
  std::uint32_t n = 0;
};

}  // namespace qsf
