// WebAssembly SIMD (128 bits): byte products through int16; pairs are added only when a group is done.
#pragma once

#include "kernels/vec/wasm.h"

namespace qsf {
namespace {

QSF_INLINE Bits look_up(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)wasm_i8x16_swizzle((v128_t)table.part[i], (v128_t)codes.part[i]));
}

template <int kBits>
using Operand = Bits;
template <int kBits>
struct Sum {
  v128_t low[kParts];  // of the lower 8 bytes of each part, 2 lanes
  v128_t high[kParts];
};
template <int kBits>
inline constexpr std::int32_t taken = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  return codes;
}

// Codes up to 4 bits stay in int16 for a whole group: 8 products of 15 * 127 are 15240.
template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, Bits codes, Bits x) {
  unroll<kParts>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    const auto c = (v128_t)codes.part[i];
    const auto v = (v128_t)x.part[i];
    if constexpr (kBits <= 4) {
      sum.low[i] = wasm_i16x8_add(sum.low[i], wasm_i16x8_extmul_low_i8x16(c, v));
      sum.high[i] = wasm_i16x8_add(sum.high[i], wasm_i16x8_extmul_high_i8x16(c, v));
    } else {
      const v128_t low = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_low_u8x16(c), wasm_i16x8_extend_low_i8x16(v));
      const v128_t high = wasm_i32x4_dot_i16x8(wasm_u16x8_extend_high_u8x16(c), wasm_i16x8_extend_high_i8x16(v));
      sum.low[i] = wasm_i32x4_add(sum.low[i], low);
      sum.high[i] = wasm_i32x4_add(sum.high[i], high);
    }
  });
}

template <int kBits>
QSF_INLINE IntPart total_part(v128_t low, v128_t high) {
  if constexpr (kBits <= 4) {
    low = wasm_i32x4_extadd_pairwise_i16x8(low);
    high = wasm_i32x4_extadd_pairwise_i16x8(high);
  }
  return (IntPart)wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
}

template <int kBits>
QSF_INLINE Ints total(const Sum<kBits>& sum) {
  return QSF_EACH(Ints, total_part<kBits>(sum.low[i], sum.high[i]));
}

}  // namespace
}  // namespace qsf
