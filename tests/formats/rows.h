// Rows of weights to a format and back.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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

enum class Spread { uniform, normal, heavy_tailed, outliers };
inline constexpr std::array kSpreads{Spread::uniform, Spread::normal, Spread::heavy_tailed, Spread::outliers};

inline std::vector<float> spread_weights(Spread spread, std::size_t n) {
  Random random(static_cast<std::uint64_t>(spread) + 11);
  const auto normal = [&] {  // twelve uniforms make one
    float sum = 0.0f;
    for (int i = 0; i < 12; ++i) sum += 0.5f * random.symmetric();
    return sum;
  };
  std::vector<float> weights(n);
  for (std::size_t i = 0; i < n; ++i) {
    switch (spread) {
      case Spread::uniform:
        weights[i] = random.symmetric();
        break;
      case Spread::normal:
        weights[i] = 0.05f * normal();
        break;
      case Spread::heavy_tailed:  // a ratio of normals has no variance; kept within fp16
        weights[i] = std::clamp(0.02f * normal() / (std::fabs(normal()) + 1e-3f), -30.0f, 30.0f);
        break;
      case Spread::outliers:
        weights[i] = 0.02f * normal() * (i % 97 == 0 ? 50.0f : 1.0f);
        break;
    }
  }
  return weights;
}

/// Whether quantize_row rounds weights to a format; others become zeros.
inline bool rounds(const Format& f) { return f.rounding != Rounding::elsewhere; }

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
