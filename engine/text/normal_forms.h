// Unicode's normal forms and lower case, from generated tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qsf::unicode {

/// The most characters in a character's decomposition.
inline constexpr std::size_t kMaxDecomposition = 18;
using Decomposition = std::array<char32_t, kMaxDecomposition>;

/// Returns the canonical combining class; 0 for a starter.
std::uint8_t combining_class(char32_t code);
/// Writes the whole decomposition, canonical or by compatibility, and returns its length, at least 1.
std::size_t decompose(char32_t code, bool compatibility, Decomposition& out);
/// Returns the composition of two characters, or 0.
char32_t compose(char32_t first, char32_t second);
/// Whether some character composes with this one after it.
bool composes_behind(char32_t code);
/// Writes the lower case and returns its length, 1 or 2.
std::size_t lower(char32_t code, Decomposition& out);

}  // namespace qsf::unicode
