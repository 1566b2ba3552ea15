// Rows of weights to a format and back.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "qsf/formats/format.h"
#include "support/seeded.h"

namespace qsf::test {

inline std::vector<float> random_weights(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> weights(n);
  for (float& w : weights) w = random.symmetric() * 0.1f;
  return weights;
}

inline std::vector<std::byte> quantized(const Format& f, std::span<const float> weights) {
  std::vector<std::byte> bytes(row_bytes(f, weights.size()));
  quantize_row(f, weights, bytes);
  return bytes;
}

inline std::vector<float> dequantized(const Format& f, std::span<const std::byte> bytes, std::size_t cols) {
  std::vector<float> weights(cols);
  dequantize_row(f, bytes, weights);
  return weights;
}

inline const Format& format(std::string_view name) { return *find_format(name); }

}  // namespace qsf::test
