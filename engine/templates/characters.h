// Characters as Python's str sees them, in valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qsf/base/utf8.h"
#include "templates/work.h"

namespace qsf::templates {

/// Returns the value of a digit of base 36 or less, or 99.
constexpr int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

bool is_space(char32_t code);
/// Whether str.splitlines() ends a line here.
bool is_line_end(char32_t code);
/// Whether repr() shows the character itself.
bool is_printable(char32_t code);
bool is_upper(char32_t code);
bool is_lower(char32_t code);
bool is_letter(char32_t code);
/// Whether it is a digit of ASCII.
bool is_digit(char32_t code);
/// Whether it is a digit, a fraction or another number of any script.
bool is_number(char32_t code);

/// Returns the bytes of the white space at text[at], or 0 if there is none.
std::size_t space_size(std::string_view text, std::size_t at);
/// Returns the bytes of the last character before text[end]; `end` is at least 1.
std::size_t last_size(std::string_view text, std::size_t end);
/// Removes white space, or the characters of `set` if there is `work`, which counts the time of the searches in it.
std::string_view strip(std::string_view text, bool front, bool back, std::string_view set = {}, Work* work = nullptr);

/// Writes the character in lower or upper case, at most 3 characters, and returns their number.
std::size_t lower(char32_t code, char32_t* out);
std::size_t upper(char32_t code, char32_t* out);

}  // namespace qsf::templates
