#include "templates/number.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/decimal.h"
#include "templates/characters.h"

namespace qsf::templates {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr std::size_t kPoint = Decimal::kPoint;
/// All digits of a double and of the middle between two.
using Digits = std::array<char, kPoint + 1080>;

/// Returns all digits of a + b, of which both are finite and not negative. There is room for a carry.
Digits sum_of(double a, double b) {
  const Decimal first(a), second(b);
  Digits sum;
  int carry = 0;
  for (std::size_t i = sum.size(); i > 0; --i) {
    const int digit = (first.digit(i - 1) - '0') + (second.digit(i - 1) - '0') + carry;
    carry = digit / 10;
    sum[i - 1] = static_cast<char>('0' + digit % 10);
  }
  return sum;
}

/// Returns the order of twice `digits` and `sum`.
int compare_doubled(const Digits& digits, const Digits& sum) {
  int order = 0, carry = 0;
  for (std::size_t i = digits.size(); i > 0; --i) {
    const int doubled = 2 * (digits[i - 1] - '0') + carry;
    carry = doubled / 10;
    const int difference = doubled % 10 - (sum[i - 1] - '0');
    if (difference != 0) order = difference;
  }
  return order;
}

bool is_even(double number) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  return bits % 2 == 0;
}

/// The decimal numbers that read as a double, as twice the ends of their range.
struct Nearest {
  explicit Nearest(double number)
      : below(sum_of(number, number == 0 ? 0 : std::nextafter(number, 0.0))),
        above(sum_of(number, std::min(std::nextafter(number, INFINITY), kLargest))),
        even(is_even(number)),
        zero(number == 0) {}

  /// Returns a number below or above 0 if the digits are below or above the range, and 0 inside.
  int place(const Digits& digits) const {
    const int high = compare_doubled(digits, above);
    if (high > 0 || (high == 0 && !even)) return 1;
    const int low = zero ? 1 : compare_doubled(digits, below);
    return low < 0 || (low == 0 && !even) ? -1 : 0;
  }

  Digits below, above;
  bool even, zero;
};

double power_of_ten(int exponent) {
  double power = 1, square = 10;
  for (int left = exponent; left > 0; left /= 2, square *= square) {
    if (left % 2 != 0) power *= square;
  }
  return power;
}

/// The significant digits of a number, and its exponent if one digit is before the point.
struct Significant {
  char digits[kMostDigits];
  int n = 0;
  int exponent = 0;
};

/// Finds the shortest digits of a number from 10^-5 to 10^15 by trying decimal places. Returns false if that fails.
bool shortest_quickly(double number, Significant& out) {
  if (number < 1e-5 || number >= 1e15) return false;
  double power = 1;
  for (int places = 0; places <= 20; ++places, power *= 10) {
    const double scaled = std::nearbyint(number * power);
    if (scaled >= 0x1p53) return false;
    if (scaled / power != number) continue;
    char text[kNumberBytes];
    out.n = static_cast<int>(write_whole(static_cast<std::int64_t>(scaled), text));
    std::memcpy(out.digits, text, static_cast<std::size_t>(out.n));
    out.exponent = out.n - 1 - places;
    while (out.n > 1 && out.digits[out.n - 1] == '0') --out.n;
    return true;
  }
  return false;
}

/// Finds the shortest digits, or `precision` if it is not negative.
Significant significant(Work& work, double number, int precision) {
  Significant out;
  work.spend(kQuickSteps);
  if (precision < 0 && shortest_quickly(number, out)) return out;
  work.spend(kSlowSteps);
  const Decimal exact(number);
  const Nearest nearest(number);
  const auto rounded_to = [&](int n) {
    Decimal rounded = exact;
    rounded.round(rounded.first() + static_cast<std::size_t>(n));
    return rounded;
  };
  int least = std::max(precision, 1), most = precision < 0 ? 17 : least;
  while (least < most) {
    const int n = (least + most) / 2;
    const Decimal rounded = rounded_to(n);
    Digits digits;
    for (std::size_t i = 0; i < digits.size(); ++i) digits[i] = rounded.digit(i);
    if (nearest.place(digits) == 0) {
      most = n;
    } else {
      least = n + 1;
    }
  }
  const Decimal rounded = rounded_to(least);
  const std::size_t first = rounded.first();
  out.n = static_cast<int>(rounded.last() - first + 1);
  for (int i = 0; i < out.n; ++i) out.digits[i] = rounded.digit(first + static_cast<std::size_t>(i));
  out.exponent = static_cast<int>(kPoint) - 1 - static_cast<int>(first);
  return out;
}

std::size_t put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return text.size();
}

/// Writes a number that is not finite. Returns 0 for any other.
std::size_t write_special(double number, char* out) {
  if (std::isnan(number)) return put(out, "nan");
  return std::isinf(number) ? put(out, number < 0 ? "-inf" : "inf") : 0;
}

/// The parts of a decimal number in a text.
struct Written {
  std::string_view whole, fraction;
  int exponent = 0;
  bool negative = false;
};

bool read_written(std::string_view text, Written& out) {
  std::size_t at = 0;
  const auto sign = [&] {
    const bool minus = at < text.size() && text[at] == '-';
    if (minus || (at < text.size() && text[at] == '+')) ++at;
    return minus;
  };
  const auto digits = [&] {
    const std::size_t begin = at;
    const auto has_digit = [&](std::size_t i) {
      return i < text.size() && is_digit(static_cast<unsigned char>(text[i]));
    };
    while (has_digit(at) || (at > begin && at < text.size() && text[at] == '_' && has_digit(at + 1))) ++at;
    return text.substr(begin, at - begin);
  };
  out.negative = sign();
  out.whole = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    out.fraction = digits();
  }
  if (out.whole.empty() && out.fraction.empty()) return false;
  if (at < text.size() && (text[at] | 0x20) == 'e') {
    ++at;
    const bool minus = sign();
    const std::string_view exponent = digits();
    if (exponent.empty()) return false;
    for (const char c : exponent)
      if (c != '_') out.exponent = std::min(out.exponent * 10 + (c - '0'), 100'000);
    if (minus) out.exponent = -out.exponent;
  }
  return at == text.size();
}

}  // namespace

Value read_whole(Work& work, std::string_view text, int base) {
  if (!work.spend(text.size() / 16)) return {};
  text = strip(text, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int of = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    if (of != 0 && (base == 0 || base == of)) {
      base = of;
      text.remove_prefix(2);
    }
  }
  if (base == 0) base = 10;
  bool large = false;
  std::int64_t number = 0;
  char last = '_';
  for (const char c : text) {
    if (c == '_' && last != '_') {
      last = c;
      continue;
    }
    const int digit = digit_value(c);
    if (digit >= base) return {};
    large = large || __builtin_mul_overflow(number, base, &number) || __builtin_sub_overflow(number, digit, &number);
    last = c;
  }
  if (last == '_') return {};
  if (large || (!negative && number == std::numeric_limits<std::int64_t>::min())) return real(INFINITY);
  return integer(negative ? number : -number);
}

Value read_real(Work& work, std::string_view text) {
  if (!work.spend(kQuickSteps + text.size() / 8)) return {};
  text = strip(text, true, true);
  Written written;
  if (!read_written(text, written)) {
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const auto is = [&](std::string_view name) {
      return std::ranges::equal(text, name, {}, [](char c) { return static_cast<char>(c | 0x20); });
    };
    if (is("nan")) return real(NAN);
    return is("inf") || is("infinity") ? real(negative ? -INFINITY : INFINITY) : Value();
  }
  Digits digits;
  digits.fill('0');
  std::uint64_t mantissa = 0;
  int dropped = 0, n_whole = 0;
  for (const char c : written.whole) n_whole += c == '_' ? 0 : 1;
  std::int64_t at = static_cast<std::int64_t>(kPoint) - n_whole - written.exponent;
  int exponent = written.exponent;
  for (const std::string_view part : {written.whole, written.fraction}) {
    for (const char c : part) {
      if (c == '_') continue;
      if (c != '0' && at < 0) return real(written.negative ? -INFINITY : INFINITY);
      if (at >= 0 && at < static_cast<std::int64_t>(digits.size())) digits[static_cast<std::size_t>(at)] = c;
      ++at;
      if (mantissa < 100'000'000'000'000'000u) {
        mantissa = mantissa * 10 + static_cast<std::uint64_t>(c - '0');
      } else {
        ++dropped;
      }
    }
  }
  for (const char c : written.fraction) exponent -= c == '_' ? 0 : 1;
  exponent += dropped;
  auto number = static_cast<double>(mantissa);
  const int size = std::abs(exponent);
  if (size > 290) {  // in two steps, so that neither overflows
    number = exponent < 0 ? number / power_of_ten(290) / power_of_ten(std::min(size - 290, 100))
                          : number * power_of_ten(290) * power_of_ten(std::min(size - 290, 100));
  } else {
    number = exponent < 0 ? number / power_of_ten(size) : number * power_of_ten(size);
  }
  const bool exact = dropped == 0 && mantissa <= (1ull << 53) && size <= 22;
  if (!exact) number = std::min(number, kLargest);
  for (int i = 0; !exact && i < 64; ++i) {  // the product is only a few neighbours away
    work.spend(kSlowSteps);
    const double above = std::nextafter(number, INFINITY);
    const int place = Nearest(number).place(digits);
    if (place > 0 && std::isinf(above)) {  // from the middle between the largest number and 2^1024, it is infinity
      if (digits >= sum_of(0x1p1023, std::nextafter(0x1p1023, 0.0))) number = above;
      break;
    }
    if (place == 0) break;
    number = place > 0 ? above : std::nextafter(number, 0.0);
  }
  return real(written.negative ? -number : number);
}

std::size_t write_whole(std::int64_t number, char* out) {
  char digits[20];
  std::size_t n = 0, size = 0;
  auto left = number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  do {
    digits[n++] = static_cast<char>('0' + left % 10);
    left /= 10;
  } while (left != 0);
  if (number < 0) out[size++] = '-';
  while (n > 0) out[size++] = digits[--n];
  return size;
}

std::size_t write_real(Work& work, double number, char* out, int precision) {
  if (const std::size_t special = write_special(number, out); special != 0) return special;
  std::size_t size = 0;
  if (std::signbit(number)) out[size++] = '-';
  if (number == 0) return size + put(out + size, precision == 0 || precision == 1 ? "0e+00" : "0.0");
  const Significant s = significant(work, std::abs(number), precision);
  const bool fixed = s.exponent >= -4 && s.exponent < (precision < 0 ? 16 : std::max(precision, 1) - 1);
  const int point = fixed ? std::max(s.exponent, 0) : 0;     // digits before the point, less one
  const int skipped = fixed ? std::max(-s.exponent, 0) : 0;  // zeros in front
  for (int i = 0; i <= point || i - skipped < s.n; ++i) {
    const int digit = i - skipped;
    out[size++] = digit >= 0 && digit < s.n ? s.digits[digit] : '0';
    if (i == point && (fixed || s.n > 1)) out[size++] = '.';
  }
  if (fixed && out[size - 1] == '.') out[size++] = '0';
  if (fixed) return size;
  out[size++] = 'e';
  out[size++] = s.exponent < 0 ? '-' : '+';
  if (std::abs(s.exponent) < 10) out[size++] = '0';
  return size + write_whole(std::abs(s.exponent), out + size);
}

std::size_t write_fixed(double number, std::uint32_t digits, char* out) {
  if (const std::size_t special = write_special(number, out); special != 0) return special;
  Decimal decimal(std::abs(number));
  decimal.round(kPoint + digits);
  std::size_t size = 0;
  if (std::signbit(number)) out[size++] = '-';
  for (std::size_t i = std::min(decimal.first(), kPoint - 1); i < kPoint + digits; ++i) {
    if (i == kPoint) out[size++] = '.';
    out[size++] = decimal.digit(i);
  }
  return size;
}

}  // namespace qsf::templates
