// What rows of logits say of a text: how likely its tokens were, and how far two models' opinions lie apart. In
// doubles, by the engine's own exp and log: the same logits give the same figures on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace qsf::run {

/// A window's first half is context only; of the tokens behind it, all but the first of the half are counted, as
/// llama.cpp's llama-perplexity does.
inline constexpr std::uint32_t first_counted(std::uint32_t window) { return window / 2; }
inline constexpr std::uint32_t n_counted(std::uint32_t window) { return window - 1 - first_counted(window); }
inline constexpr std::uint32_t kLeastWindow = 3;  // the shortest that has something to count

/// log(sum(exp(row)))
double log_sum_exp(std::span<const float> row);

/// The index of the largest; the lowest of several.
std::size_t likeliest(std::span<const float> row);

/// Of numbers that were added one by one, or sums of them.
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
  /// Of the mean; NaN of fewer than two numbers.
  double standard_error() const;
};

/// Two rows of logits of one position.
struct Compared {
  double divergence = 0;  // Kullback-Leibler, of `other` from `base`, in nats
  bool same_top = false;
};
Compared compare(std::span<const float> base, double base_sum, std::span<const float> other, double other_sum);

/// By linear interpolation between the two nearest; sorts the values.
double quantile(std::span<float> values, double share);

}  // namespace qsf::run
