// WebAssembly SIMD (128 bits): a product of 16-bit pairs, of every lane's even bytes and of its odd ones.
#pragma once

#include "kernels/vec/wasm.h"

namespace qsf {
namespace {

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)wasm_i8x16_swizzle((v128_t)table.part[i], (v128_t)codes.part[i]));
}

template <int kBits>
struct Operand {  // bytes 0 and 2, and 1 and 3, as 16-bit halves of the lane
  Bits even;
  Bits odd;
};
template <int kBits>
using Sum = Ints;
template <int kBits>
inline constexpr std::int32_t dot_bias = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  return {codes & broadcast<0x00ff00ffu>(), shift_right<8>(codes) & broadcast<0x00ff00ffu>()};
}

template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  const v128_t odd = wasm_i16x8_shr((v128_t)x.part[0], 8);
  const v128_t even = wasm_i16x8_shr(wasm_i16x8_shl((v128_t)x.part[0], 8), 8);
  sum = QSF_EACH(Ints, sum.part[i] + (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.even.part[i], even) +
                           (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.odd.part[i], odd));
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
