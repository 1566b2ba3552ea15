#include "native/cli/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qsf/base/exact.h"

namespace qsf::run {

double log_sum_exp(std::span<const float> row) {
  const double most = double{std::ranges::max(row)};
  double sum = 0;
  for (const float x : row) sum += exact::exp(double{x} - most);
  return most + exact::log(sum);
}

std::size_t likeliest(std::span<const float> row) {
  return static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
}

double Moments::standard_error() const {
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(n);
  const double variance = squares / count - mean() * mean();
  return std::sqrt(std::max(variance, 0.0) / (count - 1));
}

Compared compare(std::span<const float> base, double base_sum, std::span<const float> other, double other_sum) {
  double divergence = 0;
  for (std::size_t i = 0; i < base.size(); ++i) {
    const double log_base = double{base[i]} - base_sum, log_other = double{other[i]} - other_sum;
    divergence += exact::exp(log_base) * (log_base - log_other);
  }
  return {divergence, likeliest(base) == likeliest(other)};
}

double quantile(std::span<float> values, double share) {
  std::ranges::sort(values);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  const double low = double{values[below]}, high = double{values[above]};
  return low + (at - static_cast<double>(below)) * (high - low);
}

}  // namespace qsf::run
