// The points of GGML's IQ types, and their levels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qsf::grids {

#include "formats/grid_points.inc"

inline constexpr std::array kLevels1{-1.0f, 0.0f, 1.0f};
inline constexpr std::array kLevels2{8.0f, 25.0f, 43.0f};
inline constexpr std::array kLevels3Xxs{4.0f, 12.0f, 20.0f, 28.0f, 36.0f, 44.0f, 52.0f, 62.0f};
inline constexpr std::array kLevels3S{1.0f, 3.0f, 5.0f, 7.0f, 9.0f, 11.0f, 13.0f, 15.0f};
inline constexpr float kMoved = 0.125f;  // IQ1's points are moved up or down by this

/// Returns seven signs and an eighth that makes their number even.
template <class V>
constexpr V eight_signs(V bits) {
  const V seven = bits & 127u;
  V odd = seven ^ seven >> 4;
  odd = odd ^ odd >> 2;
  odd = odd ^ odd >> 1;
  return seven | (odd & 1u) << 7;
}

}  // namespace qsf::grids
