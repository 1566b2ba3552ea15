// The bytes of a call with the marks in it, and a place in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "qsf/answers/marks.h"

namespace qsf::answers {

/// A mark is this byte, which UTF-8 does not have, and a byte above 127 with the mark's number.
inline constexpr char kMarkByte = '\xFF';
static_assert(kMarks <= 128);
constexpr char number_byte(std::size_t mark) { return static_cast<char>(128 + mark); }

inline bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
/// Whether names of tools and parameters may have the byte.
inline bool is_of_name(char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == ':' || c == '/'; }

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Gives each byte of a text, with the texts of marks, to `put`.
template <class Put>
void spell(std::string_view text, Put put) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kMarkByte && i + 1 < text.size()) {
      for (const char c : mark_text(std::min<std::size_t>(static_cast<unsigned char>(text[++i]) & 127u, kMarks - 1)))
        put(c);
    } else {
      put(text[i]);
    }
  }
}

class Source {
 public:
  explicit Source(std::string_view text) : text_(text) {}

  bool ends() const { return at_ >= text_.size(); }
  char peek() const { return ends() ? '\0' : text_[at_]; }
  std::size_t at() const { return at_; }
  void go(std::size_t at) { at_ = std::min(at, text_.size()); }
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view between(std::size_t begin, std::size_t end) const { return text_.substr(begin, end - begin); }

  void skip_blanks() {
    while (!ends() && is_blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    const bool here = peek() == c && !ends();
    at_ += here ? 1 : 0;
    return here;
  }
  bool take(std::string_view text) {
    const bool here = rest().starts_with(text);
    at_ += here ? text.size() : 0;
    return here;
  }
  bool take_mark(std::size_t mark) {
    const bool here = is_mark(mark, at_);
    at_ += here ? 2 : 0;
    return here;
  }
  bool at_mark(std::size_t mark) const { return is_mark(mark, at_); }
  /// Returns the next place of a mark, or npos.
  std::size_t find_mark(std::size_t mark) const {
    for (std::size_t i = at_; i < text_.size(); ++i) {
      if (is_mark(mark, i)) return i;
    }
    return text_.npos;
  }
  /// Takes the longest name, which may be empty.
  std::string_view take_name() {
    const std::size_t begin = at_;
    while (!ends() && is_of_name(text_[at_])) ++at_;
    return between(begin, at_);
  }

 private:
  bool is_mark(std::size_t mark, std::size_t at) const {
    return at + 1 < text_.size() && text_[at] == kMarkByte && text_[at + 1] == number_byte(mark);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace qsf::answers
