#include "templates/lexer.h"

#include <algorithm>

#include "templates/characters.h"

namespace qsf::templates {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Returns the bytes of a number at the beginning of the text, as jinja2 delimits it.
std::size_t number_size(std::string_view text, bool& is_real) {
  const auto digits = [&](std::size_t at, auto is) {
    while (at < text.size() &&
           (is(text[at]) || (text[at] == '_' && at > 0 && at + 1 < text.size() && is(text[at + 1])))) {
      ++at;
    }
    return at;
  };
  is_real = false;
  if (text.size() > 2 && text[0] == '0' && !is_digit(text[1])) {
    const char base = static_cast<char>(text[1] | 0x20);
    const int limit = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 0;
    const std::size_t end = digits(2, [limit](char c) { return digit_value(c) < limit; });
    if (end > 2) return end;
  }
  std::size_t end = digits(0, is_digit);
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) {
    is_real = true;
    end = digits(end + 1, is_digit);
  }
  if (end < text.size() && (text[end] | 0x20) == 'e') {
    const std::size_t sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-') ? 1 : 0;
    const std::size_t first = end + 1 + sign;
    if (first < text.size() && is_digit(text[first])) {
      is_real = true;
      end = digits(first, is_digit);
    }
  }
  return !is_real && text[0] == '0' ? digits(0, [](char c) { return c == '0'; }) : end;
}

/// The signs of expressions, longer ones first.
constexpr std::string_view kSigns[]{"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "<",
                                    ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ".", ":", "|", ",", ";"};

}  // namespace

bool Lexer::skip(std::string_view text) {
  const bool found = rest().starts_with(text);
  if (found) at_ += text.size();
  return found;
}

void Lexer::skip_space() {
  while (at_ < source_.size()) {
    const std::size_t size = space_size(source_, at_);
    if (size == 0) return;
    at_ += size;
  }
}

std::string_view Lexer::without_space(std::string_view text, char mark, bool line_starts) const {
  if (mark == '-') return strip(text, false, true);
  if (mark == '+') return text;
  const std::size_t line = text.rfind('\n') + 1;  // 0 if there is none
  const std::string_view last = text.substr(line);
  const bool begins_here = line > 0 || line_starts;
  return begins_here && strip(last, false, true).empty() ? text.substr(0, line) : text;
}

bool Lexer::read_raw(std::string_view& text) {
  const std::size_t begin = at_;
  for (std::size_t tag = source_.find("{%", begin); tag != source_.npos; tag = source_.find("{%", tag + 1)) {
    at_ = tag + 2;
    const char mark = at_ < source_.size() ? source_[at_] : 0;
    if (mark == '-' || mark == '+') ++at_;
    skip_space();
    if (!skip("endraw")) continue;
    skip_space();
    if (!end_of_tag(Tag::statement)) continue;
    text = without_space(source_.substr(begin, tag - begin), mark, false);
    return true;
  }
  return false;
}

Tag Lexer::read_text(std::string_view& text, bool& more) {
  brackets_ = 0;
  more = false;
  const std::size_t begin = at_;
  const bool line_starts = begin == 0 || source_[begin - 1] == '\n';
  std::size_t open = begin;
  while (true) {
    open = source_.find('{', open);
    if (open == source_.npos || open + 1 >= source_.size()) {
      text = source_.substr(begin);
      at_ = source_.size();
      return Tag::end;
    }
    const char kind = source_[open + 1];
    if (kind == '{' || kind == '%' || kind == '#') break;
    ++open;
  }
  const char kind = source_[open + 1];
  at_ = open + 2;
  const char mark = at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+') ? source_[at_] : 0;
  if (mark != 0) ++at_;
  text = source_.substr(begin, open - begin);
  if (kind != '{' || mark == '-') text = without_space(text, mark, line_starts);
  if (kind == '{') return Tag::print;
  if (kind == '%') {
    const std::size_t inside = at_;
    skip_space();
    if (skip("raw")) {
      skip_space();
      if (rest().starts_with("%}") || rest().starts_with("-%}")) {
        if (!text.empty()) {  // the text first; the tag is read again
          more = true;
          at_ = open;
          return Tag::statement;
        }
        const bool strips = skip("-");
        at_ += 2;
        if (strips) skip_space();
        more = true;
        return read_raw(text) ? Tag::statement : Tag::unclosed_raw;
      }
    }
    at_ = inside;
    return Tag::statement;
  }
  const std::size_t close = source_.find("#}", at_);
  if (close == source_.npos) return Tag::unclosed_comment;
  at_ = close + 2;
  if (source_[close - 1] == '-' && close > open + 2) {
    skip_space();
  } else if (source_[close - 1] != '+') {
    skip("\n");
  }
  more = true;
  return Tag::statement;
}

bool Lexer::end_of_tag(Tag tag) {
  const std::string_view close = tag == Tag::print ? "}}" : "%}";
  const char mark = at_ < source_.size() ? source_[at_] : 0;
  const bool marked = mark == '-' || (mark == '+' && tag != Tag::print);
  if (!source_.substr(std::min(at_ + (marked ? 1 : 0), source_.size())).starts_with(close)) return false;
  at_ += close.size() + (marked ? 1 : 0);
  if (mark == '-') {
    skip_space();
  } else if (!marked && tag != Tag::print) {
    skip("\n");
  }
  return true;
}

Token Lexer::next(Tag tag) {
  skip_space();
  if (at_ >= source_.size()) return {};
  if (brackets_ == 0 && end_of_tag(tag)) return {TokenKind::tag_end, {}};
  const std::string_view from = rest();
  const char first = from[0];
  TokenKind kind = TokenKind::bad;
  std::size_t size = 1;
  if (begins_name(first)) {
    kind = TokenKind::name;
    while (size < from.size() && (begins_name(from[size]) || is_digit(from[size]))) ++size;
  } else if (is_digit(first)) {
    bool is_real = false;
    size = number_size(from, is_real);
    kind = is_real ? TokenKind::real : TokenKind::integer;
  } else if (first == '"' || first == '\'') {
    while (size < from.size() && from[size] != first) size += from[size] == '\\' ? 2 : 1;
    if (size < from.size()) {
      kind = TokenKind::text;
      ++size;
    } else {
      size = from.size();
    }
  } else if (const auto* sign = std::ranges::find_if(kSigns, [&](auto s) { return from.starts_with(s); });
             sign != std::end(kSigns)) {
    kind = TokenKind::sign;
    size = sign->size();
    if (first == '(' || first == '[' || first == '{') ++brackets_;
    if ((first == ')' || first == ']' || first == '}') && brackets_ > 0) --brackets_;
  }
  at_ += size;
  return {kind, from.substr(0, size)};
}

}  // namespace qsf::templates
