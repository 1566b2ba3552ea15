// The properties of characters that tokenizers use.
#pragma once

#include <cstdint>
#include <string_view>

namespace qsf::unicode {

/// General categories, except that categories which no tokenizer distinguishes are one, and that white space
/// (White_Space) has its own.
enum class Category : std::uint8_t {
  other = 0,  // controls, formats, surrogates, private characters
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

/// Returns the category of an ASCII character, for tables that are made at compile time.
constexpr Category ascii_category(char32_t c) {
  if (c >= 'a' && c <= 'z') return Category::lower;
  if (c >= 'A' && c <= 'Z') return Category::upper;
  if (c >= '0' && c <= '9') return Category::number;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Category::white;
  if (c < ' ' || c == 0x7F) return Category::other;
  constexpr std::string_view kSymbols = "$+<=>^`|~";
  return kSymbols.find(static_cast<char>(c)) != kSymbols.npos ? Category::symbol : Category::punctuation;
}

/// Returns a set with one category. A set has a bit for each.
constexpr std::uint32_t bit(Category category) { return 1u << static_cast<std::uint32_t>(category); }

}  // namespace qsf::unicode
