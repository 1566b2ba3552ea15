// WebAssembly relaxed SIMD on processors that add four products of a lane in one instruction: VNNI, NEON's dot product.
// 8-bit codes are split into their low 7 bits and their top bit.
#pragma once

#include "kernels/dots/seven_bit.h"

namespace qsf {
namespace {

template <int kBits>
struct Operand {
  Bits low;
};
template <>
struct Operand<8> {
  Bits low;
  Bits top;
};
template <int kBits>
struct Sum {
  Ints low;
};
template <>
struct Sum<8> {
  Ints low;
  Ints top;
};

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits < 8) {
    return {codes};
  } else {
    return {codes & broadcast<0x7f7f7f7fu>(), shift_right<7>(codes) & broadcast<0x01010101u>()};
  }
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  return (IntPart)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x, (v128_t)codes, (v128_t)sum);
}
QSF_INLINE Ints relaxed_dot(Ints sum, Bits codes, Bits x) {
  return QSF_EACH(Ints, dot_part(sum.part[i], codes.part[i], x.part[i]));
}

template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, const Operand<kBits>& codes, Bits x) {
  sum.low = relaxed_dot(sum.low, codes.low, x);
  if constexpr (kBits == 8) sum.top = relaxed_dot(sum.top, codes.top, x);
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
