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

/// What entered the product with a tensor, summed over positions in their order. Tensors with the same input share it.
struct Observed {
  static constexpr std::size_t kArenaBytes = 56;
  std::uint32_t section = 0;  // of the tensor, as in TensorEntry
  Role role{};
  std::uint32_t cols = 0;
  std::uint64_t n = 0;  // positions; of experts, those that chose one
  /// [cols / width, width, width] with width = observed_width(cols), the last block padded with zeros: sums of
  /// x[i] * x[j], of which only j <= i are kept.
  std::span<const double> sums;
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
