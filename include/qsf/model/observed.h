// What a session can tell of the columns that enter its products: what calibration needs.
#pragma once

#include <cstdint>
#include <span>

#include "qsf/file/layout.h"

namespace qsf {

/// Columns of an input whose products with each other are summed: all of a narrow input, else blocks side by side.
constexpr std::uint32_t observed_width(std::uint32_t cols) {
  constexpr std::uint32_t kWhole = 1024, kBlock = 256;
  return cols <= kWhole ? cols : kBlock;
}

/// Where row i of the sums begins: rows of a block follow each other, each up to its diagonal.
constexpr std::uint64_t observed_row(std::uint64_t i, std::uint64_t width) {
  const std::uint64_t within = i % width;
  return i / width * (width * (width + 1) / 2) + within * (within + 1) / 2;
}
/// How many sums there are; of the last block all.
constexpr std::uint64_t observed_sums(std::uint64_t cols, std::uint64_t width) {
  return observed_row((cols + width - 1) / width * width, width);
}

/// Who lends the memory of sums: floats of 0 that live as long as the session. They are not of its budget.
struct ObservedRoom {
  float* (*take)(void* owner, std::uint64_t n) = nullptr;  // null where there is none
  void* owner = nullptr;
};

/// What entered the product with a tensor, summed over positions in their order. Tensors with the same input share it.
struct Observed {
  static constexpr std::size_t kArenaBytes = 56;
  std::uint32_t section = 0;  // of the tensor, as in TensorEntry
  Role role{};
  std::uint32_t cols = 0;
  std::uint64_t n = 0;  // positions; of experts, those that chose one
  /// Of x[i] * x[j] with j <= i in a block of observed_width(cols) columns: see observed_row().
  std::span<const float> sums;
};

/// What a session sums up on the way.
enum class Observe : std::uint8_t { nothing, layers, products };  // each with what is before it

/// What a layer does to its columns, over positions in their order.
struct ObservedLayer {
  static constexpr std::size_t kArenaBytes = 16;
  double cosines = 0;   // between what it gets and what it gives, their sum
  std::uint64_t n = 0;  // positions
};

}  // namespace qsf
