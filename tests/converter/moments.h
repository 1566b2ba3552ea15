// Second moments to measure errors with.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/rounding/measure.h"
#include "qsf/model/observed.h"
#include "support/seeded.h"

namespace qsf::test {

/// Moments of columns that depend on each other, from n positions.
inline convert::Moments some_moments(std::uint32_t cols, std::uint32_t width, std::uint32_t n) {
  std::vector<double> sums(observed_sums(cols, width));
  Random random(3);
  for (std::uint32_t t = 0; t < n; ++t) {
    std::vector<double> x(cols);
    const double common = double{random.symmetric()};
    for (double& v : x) v = common + 0.5 * double{random.symmetric()};
    for (std::uint32_t i = 0; i < cols; ++i) {
      for (std::uint32_t j = i / width * width; j <= i; ++j) sums[observed_row(i, width) + j % width] += x[i] * x[j];
    }
  }
  return {cols, width, static_cast<double>(n), std::make_shared<const std::vector<float>>(sums.begin(), sums.end())};
}

}  // namespace qsf::test
