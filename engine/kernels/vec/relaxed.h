// WebAssembly relaxed SIMD: one dot of int8 by 7-bit codes, whose answer every machine agrees on while the second
// operand stays within 0..127. 8-bit codes go in as their low 7 bits and their top bit.
#pragma once

#include "kernels/vec/wasm.h"

namespace qsf {
namespace {

QSF_INLINE BitsPart table_lookup(BitsPart table, BitsPart codes) {
  return (BitsPart)wasm_i8x16_relaxed_swizzle((v128_t)table, (v128_t)codes);
}
QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, table_lookup(table.part[i], codes.part[i]));
}

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
inline constexpr std::int32_t dot_bias = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits < 8) {
    return {codes};
  } else {
    return {codes & broadcast<0x7f7f7f7fu>(), shift_right<7>(codes) & broadcast<0x01010101u>()};
  }
}

QSF_INLINE Ints relaxed_dot(Ints sum, Bits codes, Bits x) {
  return QSF_EACH(Ints, (IntPart)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x.part[i], (v128_t)codes.part[i],
                                                                        (v128_t)sum.part[i]));
}

template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, const Operand<kBits>& codes, Bits x) {
  sum.low = relaxed_dot(sum.low, codes.low, x);
  if constexpr (kBits == 8) sum.top = relaxed_dot(sum.top, codes.top, x);
}

template <int kDots>
class SpreadColumn {
 public:
  QSF_INLINE explicit SpreadColumn(const std::int8_t* group) : group_(group) {}
  template <int kAt>
  QSF_INLINE BitsPart four() const {
    return (BitsPart)wasm_v128_load32_splat(group_ + 4 * kAt);
  }

 private:
  const std::int8_t* group_;
};

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
