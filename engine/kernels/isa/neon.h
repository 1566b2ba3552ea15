// The baseline of 64-bit ARM: byte products through int16.
#pragma once

#include "kernels/vector/neon128.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;
inline constexpr int kMaxPass = 2;

/// Sums of codes with up to 5 bits stay in int16 for a whole group: 8 products of 31 * 127 are 31496.
template <int kBits>
inline constexpr bool kNarrow = kBits <= 5;

struct NarrowSum {
  int16x8_t low[kParts];  // of the lower 8 bytes of each part, 2 lanes
  int16x8_t high[kParts];
};
template <int kBits>
using Sum = std::conditional_t<kNarrow<kBits>, NarrowSum, Ints>;

template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, Bits codes, Bits x) {
  unroll<kParts>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    const auto c = (int8x16_t)codes.part[i];
    const auto v = (int8x16_t)x.part[i];
    if constexpr (kNarrow<kBits>) {
      sum.low[i] = vmlal_s8(sum.low[i], vget_low_s8(c), vget_low_s8(v));
      sum.high[i] = vmlal_high_s8(sum.high[i], c, v);
    } else {  // a pair of products is at most 2 * 128 * 127 = 32512
      const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(c), vget_low_s8(v)), vmull_high_s8(c, v));
      sum.part[i] = (IntPart)vpadalq_s16((int32x4_t)sum.part[i], pairs);
    }
  });
}

template <int kBits>
QSF_INLINE Ints total(const Sum<kBits>& sum) {
  if constexpr (kNarrow<kBits>) {
    return QSF_EACH(Ints, (IntPart)vpaddq_s32(vpaddlq_s16(sum.low[i]), vpaddlq_s16(sum.high[i])));
  } else {
    return sum;
  }
}

}  // namespace
}  // namespace qsf
