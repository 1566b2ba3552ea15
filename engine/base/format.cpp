#include "qsf/base/format.h"

#include <algorithm>
#include <cmath>

#include "base/decimal.h"
#include "qsf/base/utf8.h"

namespace qsf {
namespace {

/// Returns the bytes of the UTF-8 character at the beginning, or 0 if there is none.
std::size_t character_size(std::string_view text) {
  const utf8::Decoded first = utf8::decode(text, 0);
  return first.form == utf8::Form::valid ? first.size : 0;
}

/// Text that grows up to the size of its buffer. After the first piece that does not fit, nothing is added. The code is
/// small rather than fast, because sentences are rare and WebAssembly modules should be small.
class Text {
 public:
  explicit Text(std::span<char> out) : out_(out.first(out.size() - 1)) {}

  [[gnu::noinline]] void add(std::string_view character) {
    full_ = full_ || character.size() > out_.size() - size_;
    if (full_) return;
    for (const char c : character) out_[size_++] = c;
  }
  void add(char c) { add(std::string_view(&c, 1)); }
  std::size_t finish() {
    out_.data()[size_] = 0;
    return size_;
  }

 private:
  std::span<char> out_;  // with a byte after it
  std::size_t size_ = 0;
  bool full_ = false;
};

void add_natural(Text& text, std::uint64_t value, const FormatSpec& spec) {
  const unsigned base = spec.hexadecimal ? 16 : 10;
  std::array<char, 20> digits;
  std::size_t n = 0;
  do {
    digits[n++] = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  for (std::size_t i = n; i < spec.width; ++i) text.add('0');
  while (n > 0) text.add(digits[--n]);
}

void add_digits(Text& text, const Decimal& decimal, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) text.add(decimal.digit(i));
}

/// Writes six digits without trailing zeros. A number below 10^-4, or with more digits, has an exponent.
void add_general(Text& text, Decimal& decimal) {
  constexpr std::size_t kDigits = 6;
  constexpr std::size_t kPoint = Decimal::kPoint;
  decimal.round(decimal.first() + kDigits);
  const std::size_t first = decimal.first(), last = decimal.last();
  if (first >= kPoint + 4 || first + kDigits < kPoint) {
    text.add(decimal.digit(first));
    if (last > first) text.add('.');
    add_digits(text, decimal, first + 1, last + 1);
    text.add(first < kPoint ? "e+" : "e-");
    const std::size_t exponent = first < kPoint ? kPoint - 1 - first : first - (kPoint - 1);
    if (exponent < 10) text.add('0');
    return add_natural(text, exponent, {});
  }
  add_digits(text, decimal, std::min(first, kPoint - 1), kPoint);
  if (last < kPoint || decimal.digit(last) == '0') return;
  text.add('.');
  add_digits(text, decimal, kPoint, last + 1);
}

void add_real(Text& text, double value, const FormatSpec& spec) {
  if (std::isnan(value)) return text.add("nan");
  if (std::signbit(value)) text.add('-');
  if (std::isinf(value)) return text.add("inf");
  Decimal decimal(std::abs(value));
  if (!spec.fixed) return add_general(text, decimal);
  decimal.round(Decimal::kPoint + spec.precision);
  add_digits(text, decimal, std::min(decimal.first(), Decimal::kPoint - 1), Decimal::kPoint);
  if (spec.precision == 0) return;
  text.add('.');
  add_digits(text, decimal, Decimal::kPoint, Decimal::kPoint + spec.precision);
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

void add_text(Text& text, std::string_view value, const FormatSpec& spec) {
  std::size_t left = spec.has_precision ? spec.precision : value.size();
  while (!value.empty()) {
    const std::size_t size = character_size(value);
    const std::string_view character = value.substr(0, size == 0 ? 1 : size);
    if (character.size() > left) return;
    left -= character.size();
    value.remove_prefix(character.size());
    text.add(size == 0 || is_control(character) ? "?" : character);
  }
}

void add(Text& text, const FormatValue& value, FormatKind kind, const FormatSpec& spec) {
  switch (kind) {
    case FormatKind::none:
      return;
    case FormatKind::natural:
      return add_natural(text, value.natural, spec);
    case FormatKind::integer:
      if (value.integer < 0) text.add('-');
      return add_natural(text, value.integer < 0 ? 0 - value.natural : value.natural, spec);
    case FormatKind::real:
      return add_real(text, value.real, spec);
    case FormatKind::text:
      return add_text(text, value.text, spec);
  }
}

}  // namespace

std::size_t format_into(std::span<char> out, std::string_view format, const FormatValue* values, FormatKinds kinds) {
  if (out.empty()) return 0;
  Text text(out);
  std::size_t n = 0;
  while (!format.empty()) {
    const char c = format[0];
    if (c != '{' && c != '}') {
      const std::size_t size = std::max<std::size_t>(character_size(format), 1);
      text.add(format.substr(0, size));
      format.remove_prefix(size);
    } else if (format.size() > 1 && format[1] == c) {
      text.add(c);
      format.remove_prefix(2);
    } else {
      std::size_t at = 1;
      FormatSpec spec;
      const FormatKind kind = kind_at(kinds, n);
      if (!read_spec(format, at, spec) || kind == FormatKind::none) break;
      add(text, values[n++], kind, spec);
      format.remove_prefix(at);
    }
  }
  return text.finish();
}

}  // namespace qsf
