// Weights and activations for benchmarks: random, and large without the time to quantize all of it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "qsf/engine.h"

namespace qsf::bench {

/// Floats with mean 0 and deviation 1, the same for the same seed.
std::vector<float> normal(std::size_t n, std::uint64_t seed);

constexpr Layout layout_of(const Format& f) { return f.quantized() ? Layout::tiles : Layout::rows; }

/// 16 row-major rows of random weights.
std::vector<std::byte> random_rows(const Format& f, std::uint32_t cols, std::uint64_t seed);
/// The same as kernels want them: as a strip, where the format is quantized.
std::vector<std::byte> random_strip(const Format& f, std::uint32_t cols, std::uint64_t seed);
/// Fills memory with copies of a strip, from the front as often as it fits.
void fill_with(std::span<const std::byte> strip, std::span<std::byte> memory);

/// `n` random columns of activations, and rounded for quantized weights by the given kernels.
class Activations {
 public:
  Activations(const Kernels& kernels, std::uint32_t cols, std::uint32_t n, std::uint64_t seed = 2);
  /// Where a product finds them, n included.
  void into(MatmulArgs& args);

  std::vector<float> x;

 private:
  std::uint32_t cols_, n_;
  std::vector<std::int8_t> codes_;
  std::vector<float> d_, sums_, half_sums_;
};

}  // namespace qsf::bench
