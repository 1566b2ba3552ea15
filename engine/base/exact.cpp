#include "base/exact.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace qsf::exact {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two doubles, the first with 32 bits, so that its product with an exponent is exact (values of fdlibm).
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// pi / 2 in three doubles, the first two with 29 bits: exact times an integer of 24 bits.
constexpr double kHalfPi1 = 0x1.921fb54p0;
constexpr double kHalfPi2 = 0x1.10b4611p-30;
constexpr double kHalfPi3 = 0x1.4c4c6628b80dcp-59;

constexpr double kRounder = 0x1.8p52;  // added, it leaves the nearest integer, half to even, in the low bits

// c[0] + c[1] x + ... by Horner's rule.
template <std::size_t n>
constexpr double polynomial(const double (&c)[n], double x) {
  double p = c[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) p = p * x + c[i];
  return p;
}

// 1/0!, 1/1! ... 1/n!, every step-th from `first` on, with alternating signs where they are sin's and cos's.
template <std::size_t n>
struct Series {
  double c[n];
};
template <std::size_t n>
constexpr Series<n> reciprocal_factorials(int first, int step, bool alternating) {
  Series<n> series{};
  for (std::size_t i = 0; i < n; ++i) {
    double factorial = 1;  // exact up to 18!, and within half an ulp beyond
    for (int k = 2; k <= first + static_cast<int>(i) * step; ++k) factorial *= k;
    series.c[i] = (alternating && i % 2 == 1 ? -1.0 : 1.0) / factorial;
  }
  return series;
}
constexpr auto kExp = reciprocal_factorials<14>(0, 1, false);
constexpr auto kSin = reciprocal_factorials<9>(1, 2, true);
constexpr auto kCos = reciprocal_factorials<10>(0, 2, true);

double two_to(std::int64_t k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

struct Reduced {
  double r;               // |r| <= pi / 4
  std::uint64_t quarter;  // turns taken off, in quarters
};

Reduced reduce(double x) {
  const double rounded = x * 0x1.45f306dc9c883p-1 + kRounder;
  const double k = rounded - kRounder;
  const double r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  return {r, std::bit_cast<std::uint64_t>(rounded)};
}

// sin(x + turn quarters).
double wave(double x, std::uint64_t turn) {
  if (!(x >= -0x1p30 && x <= 0x1p30)) return kNaN;
  const Reduced reduced = reduce(x);
  const std::uint64_t quarter = reduced.quarter + turn;
  const double square = reduced.r * reduced.r;
  const double value = (quarter & 1) != 0 ? polynomial(kCos.c, square) : reduced.r * polynomial(kSin.c, square);
  return (quarter & 2) != 0 ? -value : value;
}

}  // namespace

// x = k ln 2 + r, |r| <= ln 2 / 2, and Taylor's series to r^13.
double exp(double x) {
  if (x != x) return x;
  if (x > 709.8) return kInfinity;
  if (x < -745.2) return 0.0;
  const double rounded = x * 0x1.71547652b82fep0 + kRounder;
  const double k = rounded - kRounder;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  const auto whole = static_cast<std::int64_t>(k);
  const std::int64_t half = whole / 2;
  return polynomial(kExp.c, r) * two_to(half) * two_to(whole - half);
}

// x = 2^k m, sqrt(1/2) <= m < sqrt(2); log m = 2 artanh((m - 1) / (m + 1)), its series to the 21st power.
double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  std::int64_t k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  // The bits of sqrt(1/2) taken away put the exponent where the mantissa passes sqrt(2).
  constexpr std::uint64_t kRootHalf = 0x3fe6a09e667f3bcdu;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x) - kRootHalf;
  k += static_cast<std::int64_t>(bits) >> 52;
  const double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) + kRootHalf);
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  constexpr double kOdd[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                             1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  const double of_m = 2.0 * s * polynomial(kOdd, square);
  const auto whole = static_cast<double>(k);
  return whole * kLn2High + (of_m + whole * kLn2Low);
}

double pow(double x, double y) { return exp(y * log(x)); }

double sin(double x) { return wave(x, 0); }
double cos(double x) { return wave(x, 1); }

}  // namespace qsf::exact
