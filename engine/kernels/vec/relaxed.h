// WebAssembly relaxed SIMD where four products of a lane are one instruction: VNNI, NEON's dot product.
#pragma once

#include "kernels/vec/seven.h"

namespace qsf {
namespace {

template <int kBits>
struct Sum {
  Ints low;
};
template <>
struct Sum<8> {
  Ints low;
  Ints top;
};
QSF_INLINE Ints relaxed_dot(Ints sum, Bits codes, Bits x) {
  return QSF_EACH(Ints, (IntPart)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x.part[i], (v128_t)codes.part[i],
                                                                        (v128_t)sum.part[i]));
}

template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, const Operand<kBits>& codes, Bits x) {
  sum.low = relaxed_dot(sum.low, codes.low, x);
  if constexpr (kBits == 8) sum.top = relaxed_dot(sum.top, codes.top, x);
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  return (IntPart)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x, (v128_t)codes, (v128_t)sum);
}

template <int kBits>
QSF_INLINE Ints total(const Sum<kBits>& sum) {
  if constexpr (kBits < 8) {
    return sum.low;
  } else {
    return sum.low + bit_cast<Ints>(shift_left<7>(bit_cast<Bits>(sum.top)));
  }
}

}  // namespace
}  // namespace qsf
