#include "qsf/base/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace qsf {
namespace {

/// Text that grows up to its room and remembers whether something was left out.
class Text {
 public:
  explicit Text(std::span<char> out) : out_(out.first(out.empty() ? 0 : out.size() - 1)) {}

  void add(char c) {
    if (size_ < out_.size()) {
      out_[size_++] = c;
    } else {
      cut_ = true;
    }
  }
  void add(std::string_view text) {
    for (const char c : text) add(c);
  }
  /// Takes the last character off if its bytes are not all there.
  std::size_t finish() {
    if (!cut_) return size_;
    std::size_t lead = size_;
    while (lead > 0 && size_ - lead < 3 && (static_cast<unsigned char>(out_[lead - 1]) & 0xc0) == 0x80) --lead;
    if (lead == 0) return size_;
    const auto first = static_cast<unsigned char>(out_[lead - 1]);
    const std::size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (size_ - (lead - 1) < whole) size_ = lead - 1;
    return size_;
  }

 private:
  std::span<char> out_;
  std::size_t size_ = 0;
  bool cut_ = false;
};

template <class Integer>
void add_integer(Text& text, Integer value, const FormatSpec& spec) {
  std::array<char, 24> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, spec.hexadecimal ? 16 : 10);
  const auto n = static_cast<std::size_t>(end - digits.data());
  for (std::size_t i = n; i < spec.width; ++i) text.add('0');
  text.add(std::string_view(digits.data(), n));
}

void add_real(Text& text, double value, const FormatSpec& spec) {
  std::array<char, 64> digits;
  char* const begin = digits.data();
  char* const end = begin + digits.size();
  constexpr double kMostFixed = 1e15;  // beyond it more digits than there is room for
  const bool fixed = spec.fixed && std::abs(value) < kMostFixed;
  const std::to_chars_result r =
      fixed ? std::to_chars(begin, end, value, std::chars_format::fixed, std::min<int>(spec.precision, 20))
            : std::to_chars(begin, end, value, std::chars_format::general, 6);
  text.add(std::string_view(begin, static_cast<std::size_t>(r.ptr - begin)));
}

void add_text(Text& text, std::string_view value, const FormatSpec& spec) {
  const bool cut = spec.has_precision && value.size() > spec.precision;
  if (cut) {
    value = value.substr(0, spec.precision);
    while (!value.empty() && (static_cast<unsigned char>(value.back()) & 0xc0) == 0x80) value.remove_suffix(1);
    if (!value.empty() && (static_cast<unsigned char>(value.back()) & 0x80) != 0) value.remove_suffix(1);
  }
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto c = static_cast<unsigned char>(value[i]);
    // U+0080 to U+009F are control characters too: C2 80 to C2 9F.
    const bool two = c == 0xc2 && i + 1 < value.size() && (static_cast<unsigned char>(value[i + 1]) & 0xe0) == 0x80;
    text.add(c < 0x20 || c == 0x7f || two ? '?' : value[i]);
    i += two ? 1 : 0;
  }
}

void add(Text& text, const FormatArg& arg, const FormatSpec& spec) {
  switch (arg.kind()) {
    case FormatArg::Kind::natural:
      return add_integer(text, arg.natural(), spec);
    case FormatArg::Kind::integer:
      return add_integer(text, arg.integer(), spec);
    case FormatArg::Kind::real:
      return add_real(text, arg.real(), spec);
    case FormatArg::Kind::text:
      return add_text(text, arg.text(), spec);
  }
}

}  // namespace

std::size_t format_into(std::span<char> out, std::string_view format, std::span<const FormatArg> args) {
  if (out.empty()) return 0;
  Text text(out);
  std::size_t n = 0;
  for (std::size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '{' && c != '}') {
      text.add(c);
    } else if (at < format.size() && format[at] == c) {
      text.add(format[at++]);
    } else {
      FormatSpec spec;
      if (!read_spec(format, at, spec) || n == args.size()) break;
      add(text, args[n++], spec);
    }
  }
  const std::size_t size = text.finish();
  out[size] = 0;
  return size;
}

}  // namespace qsf
