// A block's numbers as they are stored. Searches change them, and blocks are written from them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/fit.h"
#include "qsf/formats/format.h"

namespace qsf {

struct alignas(FitLanes) Floats : std::array<float, kMaxBlock> {};

inline FitLanes lanes_at(const float* at) {
  FitLanes out;
  __builtin_memcpy(&out, at, sizeof out);
  return out;
}
inline void put_lanes(float* at, FitLanes v) { __builtin_memcpy(at, &v, sizeof v); }
inline double sum_of(FitLanes v) { return (double{v[0]} + double{v[2]}) + (double{v[1]} + double{v[3]}); }
inline float inverse_of(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

struct Numbers {
  float scale = 0, minimum = 0;  // of the block; with sub-scales, the minimum is subtracted
  std::array<int, kMaxSubBlocks> subs{};
  std::array<int, kMaxSubBlocks> sub_minima{};
  Floats levels{};
  std::array<std::uint8_t, kMaxBlock> codes{};  // of a trellis, because levels do not determine them

  /// Returns the line of sub-block j, or of the block.
  Line line(const Format& f, std::uint32_t j) const {
    if (f.sub.kind == Sub::none) return {scale, minimum};
    return {scale * static_cast<float>(subs[j]), -(minimum * static_cast<float>(sub_minima[j]))};
  }
};

/// Returns a scale after rounding to its field's type.
float stored_scale(const Format& f, float scale);

/// Whether scales and subtracted minima must be at least 0.
constexpr bool only_positive(const Format& f) { return f.sub.kind == Sub::k2 || f.sub.kind == Sub::k4; }

/// Sums over a block of the factors of its scale (a) and minimum (b) and of its weights' errors (e).
struct ScaleSums {
  double aa, ab, bb, ae, be;
};
/// Sets the block's scale and minimum to the values with the least error. Returns false if the format cannot store
/// them.
bool fit_scale(const Format& f, const ScaleSums& sums, Numbers& numbers);

Numbers read_numbers(const Format& f, const std::byte* block);
void write_numbers(const Format& f, const Numbers& numbers, std::byte* out);

}  // namespace qsf
