// Sums over the columns that enter a session's products, for calibration.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/file/layout.h"

namespace qsf {

/// Returns the columns of an input whose products with each other are summed: all columns of a narrow input, else
/// blocks of neighbours.
constexpr std::uint32_t observed_width(std::uint32_t cols) {
  constexpr std::uint32_t kWhole = 1024, kBlock = 256;
  return cols <= kWhole ? cols : kBlock;
}

/// Returns the index of row i of the sums. The rows of a block follow each other, each up to its diagonal.
constexpr std::uint64_t observed_row(std::uint64_t i, std::uint64_t width) {
  const std::uint64_t within = i % width;
  return i / width * (width * (width + 1) / 2) + within * (within + 1) / 2;
}
/// Returns the number of sums. The last block has all of its sums.
constexpr std::uint64_t observed_sums(std::uint64_t cols, std::uint64_t width) {
  return observed_row((cols + width - 1) / width * width, width);
}

/// The owner of the memory for sums: zeroed floats that exist as long as the session. They are not part of its budget.
struct ObservedRoom {
  float* (*take)(void* owner, std::uint64_t n) = nullptr;  // null if there is none
  void* owner = nullptr;
};

/// The inputs of the product with a tensor, summed over positions in order. Tensors with the same input share one.
struct Observed {
  static constexpr std::size_t kArenaBytes = 56;
  std::uint32_t stage = 0;  // of the tensor, as in TensorEntry
  Role role{};
  std::uint32_t cols = 0;
  std::uint64_t n = 0;  // positions; for an expert, the positions that selected it
  /// Sums of x[i] * x[j] with j <= i in a block of observed_width(cols) columns: see observed_row().
  std::span<const float> sums;
};

/// The quantities that a session sums during passes.
enum class Observe : std::uint8_t { nothing, layers, products };  // each includes the previous ones

/// The effect of a layer on its columns, over positions in order.
struct ObservedLayer {
  static constexpr std::size_t kArenaBytes = 16;
  double cosines = 0;   // sum of the cosines between the layer's input and output
  std::uint64_t n = 0;  // positions
};

}  // namespace qsf
