#include "base/decimal.h"

#include <algorithm>
#include <bit>

namespace qsf {

Decimal::Decimal(double number) {
  constexpr std::uint32_t kBase = 1'000'000'000;
  constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(number);
  const int biased = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t mantissa = (bits & kFraction) + (biased != 0 ? kFraction + 1 : 0);
  std::array<std::uint32_t, kLimbs> limbs{};
  limbs[kPoint / 9 - 1] = static_cast<std::uint32_t>(mantissa % kBase);
  limbs[kPoint / 9 - 2] = static_cast<std::uint32_t>(mantissa / kBase);
  int exponent = std::max(biased, 1) - 1075;
  while (exponent > 0) {
    const int by = std::min(exponent, 29);
    std::uint64_t carry = 0;
    for (std::size_t i = kPoint / 9; i-- > 0;) {
      const std::uint64_t limb = (std::uint64_t{limbs[i]} << by) + carry;
      limbs[i] = static_cast<std::uint32_t>(limb % kBase);
      carry = limb / kBase;
    }
    exponent -= by;
  }
  while (exponent < 0) {  // 2^9 divides the base
    const int by = std::min(-exponent, 9);
    std::uint32_t carry = 0;
    for (std::uint32_t& limb : limbs) {
      const std::uint32_t rest = limb & ((1u << by) - 1);
      limb = (limb >> by) + carry;
      carry = (kBase >> by) * rest;
    }
    exponent += by;
  }
  for (std::size_t i = 0; i < kLimbs; ++i) {
    for (std::size_t j = 9; j-- > 0; limbs[i] /= 10) digits_[9 * i + j] = static_cast<char>('0' + limbs[i] % 10);
  }
}

void Decimal::round(std::size_t kept) {
  if (kept == 0 || kept >= digits_.size()) return;
  const auto end = digits_.begin() + static_cast<std::ptrdiff_t>(kept);
  const bool more = std::any_of(end + 1, digits_.end(), [](char digit) { return digit != '0'; });
  const bool odd = (end[-1] - '0') % 2 != 0;
  const bool up = *end > '5' || (*end == '5' && (more || odd));
  std::fill(end, digits_.end(), '0');
  for (auto digit = end; up;) {
    if (*--digit != '9') {
      ++*digit;
      break;
    }
    *digit = '0';
  }
}

std::size_t Decimal::first() const {
  const auto found = std::find_if(digits_.begin(), digits_.end(), [](char digit) { return digit != '0'; });
  return found == digits_.end() ? kPoint : static_cast<std::size_t>(found - digits_.begin());
}

std::size_t Decimal::last() const {
  std::size_t i = digits_.size();
  while (i > 0 && digits_[i - 1] == '0') --i;
  return i == 0 ? kPoint : i - 1;
}

}  // namespace qsf
