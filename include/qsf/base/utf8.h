// UTF-8 as the Unicode Standard defines it (table 3-7): no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qsf::utf8 {

enum class Form : std::uint8_t {
  valid,
  invalid,     // cannot become a character; `size` is the maximal subpart that one U+FFFD replaces
  incomplete,  // the text ends inside a possible character
};

struct Decoded {
  char32_t code;
  std::uint8_t size;  // bytes; at least 1
  Form form;
};

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Decodes the character at text[at]. `at` must be less than text.size().
constexpr Decoded decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1, Form::valid};
  if (lead < 0xC2 || lead > 0xF4) return {0, 1, Form::invalid};
  const std::uint8_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code = lead & (0x7Fu >> size);
  for (std::uint8_t i = 1; i < size; ++i) {
    if (at + i >= text.size()) return {0, i, Form::incomplete};
    const std::uint8_t next = byte(at + i);
    if (next < low || next > high) return {0, i, Form::invalid};
    code = code << 6 | (next & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {code, size, Form::valid};
}

/// Writes the bytes of a character, at most 4, and returns their number.
constexpr std::size_t encode(char32_t code, char* out) {
  const std::size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kLead[]{0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<char>(kLead[more] | code >> (6 * more));
  for (std::size_t i = 1; i <= more; ++i) out[i] = static_cast<char>(0x80u | (code >> (6 * (more - i)) & 0x3Fu));
  return more + 1;
}

/// Returns the index of the first byte that is not part of a valid character, or text.size() if there is none.
constexpr std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Decoded next = decode(text, at);
    if (next.form != Form::valid) break;
    at += next.size;
  }
  return at;
}

constexpr bool is_valid(std::string_view text) { return valid_prefix(text) == text.size(); }

}  // namespace qsf::utf8
