// The limit of guessed tokens.
#pragma once

#include <cstdint>

namespace qsf {

/// The most tokens that a pass guesses ahead: a window's ring lets a sequence go back over this many positions.
inline constexpr std::uint32_t kMostGuesses = 15;

}  // namespace qsf
