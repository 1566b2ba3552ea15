// Weights and activations for benchmarks. They are random, and large matrices repeat a strip, because quantizing all of
// them would take long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "qsf/engine.h"

namespace qsf::bench {

/// Returns floats with mean 0 and deviation 1; the same seed gives the same floats.
std::vector<float> normal(std::size_t n, std::uint64_t seed);

constexpr Layout layout_of(const Format& f) { return f.quantized() ? Layout::tiles : Layout::rows; }

/// Returns 16 row-major rows of random weights.
std::vector<std::byte> random_rows(const Format& f, std::uint32_t cols, std::uint64_t seed);
/// Returns the same weights in the order that kernels read: a strip, if the format is quantized.
std::vector<std::byte> random_strip(const Format& f, std::uint32_t cols, std::uint64_t seed);
/// Fills memory with whole copies of a strip, from the front.
void fill_with(std::span<const std::byte> strip, std::span<std::byte> memory);

/// `n` random columns of activations, also rounded by the given kernels for quantized weights.
class Activations {
 public:
  Activations(const Kernels& kernels, std::uint32_t cols, std::uint32_t n, std::uint64_t seed = 2);
  /// Sets the arguments of a product to these activations, n included.
  void into(MatmulArgs& args);

  std::vector<float> x;

 private:
  std::uint32_t cols_, n_;
  std::vector<std::int8_t> codes_;
  std::vector<float> d_, sums_, half_sums_;
};

}  // namespace qsf::bench
