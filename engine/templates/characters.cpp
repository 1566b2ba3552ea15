#include "templates/characters.h"

#include "text/normal_forms.h"
#include "text/unicode.h"

namespace qsf::templates {

using unicode::bit;
using unicode::Category;
using unicode::category_of;

namespace {

bool has(char32_t code, std::uint32_t set) { return (bit(category_of(code)) & set) != 0; }

}  // namespace

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x1F);
  return category_of(code) == Category::white;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

bool is_printable(char32_t code) {
  if (code < 0x7F) return code >= ' ';
  return !has(code, bit(Category::other) | bit(Category::white) | bit(Category::unassigned));
}

bool is_upper(char32_t code) { return category_of(code) == Category::upper; }
bool is_lower(char32_t code) { return category_of(code) == Category::lower; }
bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }
bool is_number(char32_t code) { return category_of(code) == Category::number; }
bool is_letter(char32_t code) {
  return has(code, bit(Category::upper) | bit(Category::lower) | bit(Category::title) | bit(Category::modifier) |
                       bit(Category::letter));
}

std::size_t space_size(std::string_view text, std::size_t at) {
  const utf8::Decoded c = utf8::decode(text, at);
  return c.form == utf8::Form::valid && is_space(c.code) ? c.size : 0;
}

std::size_t last_size(std::string_view text, std::size_t end) {
  std::size_t size = 1;
  while (size < end && (static_cast<unsigned char>(text[end - size]) & 0xC0) == 0x80) ++size;
  return size;
}

std::string_view strip(std::string_view text, bool front, bool back, std::string_view set, Work* work) {
  const auto removed = [&](std::string_view character) {
    if (work == nullptr) return space_size(character, 0) != 0;
    return work->spend(1 + set.size() / 8) && set.find(character) != set.npos;
  };
  while (front && !text.empty()) {
    const std::size_t size = utf8::decode(text, 0).size;
    if (!removed(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (back && !text.empty()) {
    const std::size_t size = last_size(text, text.size());
    if (!removed(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  return text;
}

std::size_t lower(char32_t code, char32_t* out) {
  unicode::Decomposition some;
  const std::size_t n = unicode::lower(code, some);
  for (std::size_t i = 0; i < n; ++i) out[i] = some[i];
  return n;
}

std::size_t upper(char32_t code, char32_t* out) {
  out[0] = code;
  if (code == 0xDF) {  // the only such letter of Latin-1
    out[0] = out[1] = 'S';
    return 2;
  }
  if (!is_lower(code)) return 1;
  // Where scripts keep their upper case, as distances from the lower case. There is no table of upper case.
  constexpr std::uint32_t kDistances[]{32, 1, 80, 48, 37, 63, 64, 38, 0xFFFFFF87 /* y with diaeresis */, 7264, 42319};
  for (const std::uint32_t distance : kDistances) {
    const char32_t candidate = code - distance;
    char32_t lowered[3];
    if (candidate < 0x110000 && lower(candidate, lowered) == 1 && lowered[0] == code && candidate != code) {
      out[0] = candidate;
      break;
    }
  }
  return 1;
}

}  // namespace qsf::templates
