// Scores of a text by rows of logits: the likelihood of its tokens, and the distance between two models' predictions.
// They are doubles by the engine's own exp and log, so that the same logits give the same figures on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qsf::run {

/// The first half of a window is context only. All tokens of the second half except its first are counted, as by
/// llama.cpp's llama-perplexity.
inline constexpr std::uint32_t first_counted(std::uint32_t window) { return window / 2; }
inline constexpr std::uint32_t n_counted(std::uint32_t window) { return window - 1 - first_counted(window); }
inline constexpr std::uint32_t kLeastWindow = 3;  // the shortest window with a counted token

/// Returns log(sum(exp(row))).
double log_sum_exp(std::span<const float> row);

/// Returns the index of the largest logit, the lowest of equals.
std::size_t likeliest(std::span<const float> row);

/// Sums of numbers, added one by one or as other sums.
struct Moments {
  double sum = 0, squares = 0;
  std::uint64_t n = 0;

  void add(double x) { add({x, x * x, 1}); }
  void add(const Moments& other) {
    sum += other.sum;
    squares += other.squares;
    n += other.n;
  }
  double mean() const { return sum / static_cast<double>(n); }
  /// Returns the standard error of the mean; NaN for fewer than two numbers.
  double standard_error() const;
};

/// The comparison of two rows of logits of one position.
struct Compared {
  double divergence = 0;  // Kullback-Leibler, of `other` from `base`, in nats
  bool same_top = false;
};
Compared compare(std::span<const float> base, double base_sum, std::span<const float> other, double other_sum);

/// Returns a quantile by linear interpolation between the two nearest values; sorts the values.
double quantile(std::span<float> values, double share);

}  // namespace qsf::run
