#include "answers/literal.h"

#include <algorithm>
#include <array>

#include "answers/syntaxes.h"
#include "qsf/base/utf8.h"

namespace qsf::answers {
namespace {

constexpr std::array kQuotes{mark_of("<|\"|>"), mark_of("<escape>")};
/// Words of JSON and of Python, each with its word in JSON.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords{
    {{"true", "true"}, {"false", "false"}, {"null", "null"}, {"True", "true"}, {"False", "false"}, {"None", "null"}}};

bool read_hex(Source& in, int digits, char32_t& code) {
  code = 0;
  for (int i = 0; i < digits; ++i) {
    const char c = in.peek();
    const char lower = static_cast<char>(c | 0x20);
    if (!is_digit(c) && (lower < 'a' || lower > 'f')) return false;
    code = code * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    in.go(in.at() + 1);
  }
  return true;
}

/// Reads an escape after its backslash. One that is not known stands for itself.
bool read_escape(Source& in, Out& out, void (Out::*put)(char)) {
  constexpr std::string_view kNames = "\"'\\/bfnrt\n", kMeanings = "\"'\\/\b\f\n\r\t";
  if (in.ends()) return false;
  const char c = in.peek();
  in.go(in.at() + 1);
  if (const std::size_t i = kNames.find(c); i != kNames.npos) {
    if (i < kMeanings.size()) (out.*put)(kMeanings[i]);
    return true;
  }
  if (c != 'u' && c != 'x') {
    (out.*put)('\\');
    (out.*put)(c);
    return true;
  }
  char32_t code = 0;
  if (!read_hex(in, c == 'u' ? 4 : 2, code)) return false;
  if (code >= 0xD800 && code < 0xDC00) {
    char32_t low = 0;
    const std::size_t after = in.at();
    const bool pair = in.take("\\u") && read_hex(in, 4, low) && low >= 0xDC00 && low < 0xE000;
    if (!pair) in.go(after);
    code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
  } else if (code >= 0xDC00 && code < 0xE000) {
    code = 0xFFFD;  // a half of a character
  }
  std::array<char, 4> bytes{};
  const std::size_t n = utf8::encode(code, bytes.data());
  for (std::size_t i = 0; i < n; ++i) (out.*put)(bytes[i]);
  return true;
}

/// Copies a number of JSON.
bool copy_number(Source& in, Out& out) {
  const std::size_t begin = in.at();
  const auto digits = [&] {
    const std::size_t from = in.at();
    while (is_digit(in.peek())) in.go(in.at() + 1);
    return in.at() - from;
  };
  (void)in.take('-');
  const bool zero = in.peek() == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (in.take('.') && digits() == 0) return false;
  if (in.take('e') || in.take('E')) {
    if (!in.take('+')) (void)in.take('-');
    if (digits() == 0) return false;
  }
  if (is_of_name(in.peek())) return false;
  out.put(in.between(begin, in.at()));
  return true;
}

bool copy_string(Source& in, Out& out) {
  out.put('"');
  if (!read_text(in, out, &Out::put_escaped)) return false;
  out.put('"');
  return true;
}

/// Copies a list, a tuple or an object after its bracket.
bool copy_items(Source& in, Out& out, char close, std::uint32_t depth) {
  const bool object = close == '}';
  out.put(object ? '{' : '[');
  for (bool first = true;; first = false) {
    in.skip_blanks();
    if (in.take(close)) break;  // also after a comma
    if (!first) out.put(',');
    if (object) {
      if (begins_text(in)) {
        if (!copy_string(in, out)) return false;
      } else {
        const std::size_t begin = in.at();
        while (is_letter(in.peek()) || is_digit(in.peek()) || in.peek() == '-') in.go(in.at() + 1);
        if (in.at() == begin) return false;
        write_string(in.between(begin, in.at()), out);
      }
      in.skip_blanks();
      if (!in.take(':')) return false;
      out.put(':');
    }
    if (!copy_value(in, out, depth + 1)) return false;
    in.skip_blanks();
    if (in.take(',')) continue;
    if (!in.take(close)) return false;
    break;
  }
  out.put(object ? '}' : ']');
  return true;
}

}  // namespace

bool begins_text(const Source& in) {
  if (in.peek() == '"' || in.peek() == '\'') return true;
  return std::ranges::any_of(kQuotes, [&](std::size_t quote) { return in.at_mark(quote); });
}

bool read_text(Source& in, Out& out, void (Out::*put)(char)) {
  for (const std::size_t quote : kQuotes) {
    if (!in.take_mark(quote)) continue;
    const std::size_t end = in.find_mark(quote);
    if (end == std::string_view::npos) return false;
    spell(in.between(in.at(), end), [&](char c) { (out.*put)(c); });
    in.go(end);
    return in.take_mark(quote);
  }
  const char quote = in.peek();
  if (quote != '"' && quote != '\'') return false;
  in.go(in.at() + 1);
  while (!in.ends()) {
    if (in.take(quote)) return true;
    if (in.take('\\')) {
      if (!read_escape(in, out, put)) return false;
      continue;
    }
    const std::size_t size = in.peek() == kMarkByte ? 2 : 1;
    spell(in.between(in.at(), in.at() + size), [&](char c) { (out.*put)(c); });
    in.go(in.at() + size);
  }
  return false;
}

bool copy_value(Source& in, Out& out, std::uint32_t depth) {
  if (depth > kMaxDepth) return false;
  in.skip_blanks();
  if (in.take('{')) return copy_items(in, out, '}', depth);
  if (in.take('[')) return copy_items(in, out, ']', depth);
  if (in.take('(')) return copy_items(in, out, ')', depth);
  if (begins_text(in)) return copy_string(in, out);
  if (!is_letter(in.peek())) return copy_number(in, out);
  const std::string_view word = in.take_name();
  const auto* const known = std::ranges::find(kWords, word, [](const auto& pair) { return pair.first; });
  if (known == kWords.end()) return false;
  out.put(known->second);
  return true;
}

void write_string(std::string_view text, Out& out) {
  out.put('"');
  spell(text, [&](char c) { out.put_escaped(c); });
  out.put('"');
}

}  // namespace qsf::answers
