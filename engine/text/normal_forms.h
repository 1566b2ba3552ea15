// Unicode's normal forms and lower case, from generated tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qsf::unicode {

/// The most characters that one decomposes into.
inline constexpr std::size_t kMaxDecomposition = 18;
using Decomposition = std::array<char32_t, kMaxDecomposition>;

/// The canonical combining class; 0: a starter.
std::uint8_t combining_class(char32_t code);
/// The whole decomposition, canonical or by compatibility; gives its length, at least 1.
std::size_t decompose(char32_t code, bool compatibility, Decomposition& out);
/// What two characters compose to; 0 when they do not.
char32_t compose(char32_t first, char32_t second);
/// Whether something composes with this character behind it.
bool composes_behind(char32_t code);
/// The lower case: one or two characters; gives how many.
std::size_t lower(char32_t code, Decomposition& out);

}  // namespace qsf::unicode
