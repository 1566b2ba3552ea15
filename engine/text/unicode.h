// What tokenizers know of characters.
#pragma once

#include <cstdint>
#include <string_view>

namespace qsf::unicode {

/// General categories; those that no tokenizer tells apart are one. White space (White_Space) is its own.
enum class Category : std::uint8_t {
  other = 0,  // controls, formats, surrogates, private ones
  upper = 1,
  lower = 2,
  title = 3,
  modifier = 4,
  letter = 5,  // without case
  nonspacing = 6,
  spacing = 7,
  enclosing = 8,
  number = 9,
  punctuation = 10,
  symbol = 11,
  white = 12,
  unassigned = 13,
};
inline constexpr std::uint32_t kCategories = 14;

Category category_of(char32_t code);

/// The categories of ASCII's characters, for tables that are made when compiling.
constexpr Category ascii_category(char32_t c) {
  if (c >= 'a' && c <= 'z') return Category::lower;
  if (c >= 'A' && c <= 'Z') return Category::upper;
  if (c >= '0' && c <= '9') return Category::number;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Category::white;
  if (c < ' ' || c == 0x7F) return Category::other;
  constexpr std::string_view kSymbols = "$+<=>^`|~";
  return kSymbols.find(static_cast<char>(c)) != kSymbols.npos ? Category::symbol : Category::punctuation;
}

/// A set of categories, a bit each.
constexpr std::uint32_t bit(Category category) { return 1u << static_cast<std::uint32_t>(category); }

}  // namespace qsf::unicode
