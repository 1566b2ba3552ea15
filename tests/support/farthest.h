// How far numbers are from those that are expected: the one comparison by a largest difference.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <ranges>

namespace qsf::test {

/// The largest difference of two lists, number by number. Infinity where one is longer or has a number that is not
/// finite, so that no bound holds for it.
template <class Numbers, class Expected>
double farthest(const Numbers& numbers, const Expected& expected) {
  if (std::ranges::size(numbers) != std::ranges::size(expected)) return std::numeric_limits<double>::infinity();
  double worst = 0;
  auto at = std::ranges::begin(expected);
  for (const auto number : numbers) {
    const double difference = std::abs(static_cast<double>(number) - static_cast<double>(*at++));
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, difference);
  }
  return worst;
}

/// The same as a share of the largest expected number.
template <class Numbers, class Expected>
double relative_difference(const Numbers& numbers, const Expected& expected) {
  double largest = 0;
  for (const auto number : expected) largest = std::max(largest, std::abs(static_cast<double>(number)));
  return farthest(numbers, expected) / largest;
}

}  // namespace qsf::test
