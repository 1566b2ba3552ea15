// The decimal digits of a float, equal to those of printf. Standard libraries' own conversion is faster, but adds 150
// KB of tables to a WebAssembly module.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qsf {

class Decimal {
 public:
  /// The number of digits before the point, leading zeros included: one more than the largest number has.
  static constexpr std::size_t kPoint = 9 * 35;

  /// Computes all digits of a finite number >= 0, exactly.
  explicit Decimal(double number);

  /// Rounds to `kept` digits, leading zeros included; half to even.
  void round(std::size_t kept);
  char digit(std::size_t i) const { return i < digits_.size() ? digits_[i] : '0'; }
  /// Returns the index of the first digit that is not 0, and of the last; kPoint for the number 0.
  std::size_t first() const;
  std::size_t last() const;

 private:
  static constexpr std::size_t kLimbs = kPoint / 9 + 120;  // the smallest number has 1074 digits after the point

  std::array<char, 9 * kLimbs> digits_;
};

}  // namespace qsf
