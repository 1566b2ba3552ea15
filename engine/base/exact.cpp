#include "qsf/base/exact.h"

namespace qsf::exact {

// x = 2^k m, sqrt(1/2) <= m < sqrt(2); log m = 2 artanh((m - 1) / (m + 1)), its series to the 21st power.
double log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  std::int64_t k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  // Subtracting the bits of sqrt(1/2) changes the exponent at sqrt(2), for every mantissa.
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

}  // namespace qsf::exact
