// Guessed tokens: their limit, their source, and those that a host expects.
#pragma once

#include <array>
#include <cstdint>

namespace qsf {

/// The most tokens that a pass guesses ahead: a window's ring lets a sequence go back over this many positions.
inline constexpr std::uint32_t kMostGuesses = 15;

/// Who guesses the tokens that Prompt::expected does not have.
enum class GuessSource : std::uint8_t {
  text,    // the engine, from earlier occurrences of the last tokens
  host,    // the host, by Session::guess()
  layers,  // the engine, by the first layers of the model and its head
  head,    // the engine, by the model's own layer for further tokens
};

/// The first `n` tokens are expected next. Those after one that is not in the vocabulary are not taken.
struct ExpectedTokens {
  std::array<std::uint32_t, kMostGuesses> ids{};
  std::uint32_t n = 0;
};

}  // namespace qsf
