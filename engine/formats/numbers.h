// A block's numbers as they are stored: what searches change and blocks are written from.
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
  float scale = 0, minimum = 0;  // the block's; with sub-scales what is taken away
  std::array<int, kMaxSubBlocks> subs{};
  std::array<int, kMaxSubBlocks> sub_minima{};
  Floats levels{};
  std::array<std::uint8_t, kMaxBlock> codes{};  // of a trellis, whose levels do not tell them

  /// Of sub-block j, or the block's.
  Line line(const Format& f, std::uint32_t j) const {
    if (f.sub.kind == Sub::none) return {scale, minimum};
    return {scale * static_cast<float>(subs[j]), -(minimum * static_cast<float>(sub_minima[j]))};
  }
};

/// What a field of the format's type keeps of a scale.
float stored_scale(const Format& f, float scale);

/// Scales are at least 0, and so is what is taken away.
constexpr bool only_positive(const Format& f) { return f.sub.kind == Sub::k2 || f.sub.kind == Sub::k4; }

/// Sums over a block of what multiplies its scale (a), its minimum (b), and is left of its weights (e).
struct ScaleSums {
  double aa, ab, bb, ae, be;
};
/// The block's scale and minimum that leave least, to which they are set; false where the format cannot store them.
bool fit_scale(const Format& f, const ScaleSums& sums, Numbers& numbers);

Numbers read_numbers(const Format& f, const std::byte* block);
void write_numbers(const Format& f, const Numbers& numbers, std::byte* out);

}  // namespace qsf
