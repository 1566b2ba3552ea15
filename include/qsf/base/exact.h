// Scalar exp, log and pow in double, with IEEE addition, multiplication and division only, so that every machine
// computes the same bits. The float vector forms of exp, tanh, sin and cos are kernels (kernels/exact.inl). Tests
// compare the error bounds with long double.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace qsf::exact {

// ln 2 in two doubles. The first has 32 bits, so that its product with an exponent is exact (values of fdlibm).
inline constexpr double kLn2High = 0x1.62e42feep-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// Returns c[0] + c[1] x + ... by Horner's rule.
template <std::size_t n>
constexpr double polynomial(const double (&c)[n], double x) {
  double p = c[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) p = p * x + c[i];
  return p;
}

constexpr double two_to(std::int64_t k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); }

/// Returns e^x with a relative error of at most 2^-50 over [-708, 709]. x = k ln 2 + r, |r| <= ln 2 / 2, and Taylor's
/// series to r^13.
constexpr double exp(double x) {
  if (x != x) return x;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0.0;
  constexpr double kRounder = 0x1.8p52;  // adding it leaves the nearest integer, half to even, in the low bits
  constexpr double kSeries[] = {
      1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
      1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  const double k = (x * 0x1.71547652b82fep0 + kRounder) - kRounder;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  const auto whole = static_cast<std::int64_t>(k);
  const std::int64_t half = whole / 2;
  return polynomial(kSeries, r) * two_to(half) * two_to(whole - half);
}

double log(double x);            // x > 0; relative error <= 2^-50
double pow(double x, double y);  // x > 0; relative error <= 2^-50 (1 + |y log x|)

}  // namespace qsf::exact
