// WebAssembly relaxed SIMD on x86 without VNNI, where four products of a lane are five instructions and pairs of
// products one (pmaddubsw).
#pragma once

#include "kernels/vec/seven.h"

namespace qsf {
namespace {

template <int kBits>
struct Sum {
  Ints low;  // of int16 where codes have at most 4 bits
};
template <>
struct Sum<8> {
  Ints low;
  Ints top;  // of int16
};

QSF_INLINE v128_t pairs(BitsPart codes, BitsPart x) {
  return wasm_i16x8_relaxed_dot_i8x16_i7x16((v128_t)x, (v128_t)codes);
}
QSF_INLINE IntPart sums_of_2(v128_t sums) { return (IntPart)wasm_i32x4_extadd_pairwise_i16x8(sums); }

/// Stays in int16 for a whole group: 8 dots of 2 * 15 * 127 are 30480.
QSF_INLINE Ints add_pairs(Ints sum, Bits codes, Bits x) {
  return QSF_EACH(Ints, (IntPart)wasm_i16x8_add((v128_t)sum.part[i], pairs(codes.part[i], x.part[i])));
}

template <int kBits>
QSF_INLINE void dot(Sum<kBits>& sum, const Operand<kBits>& codes, Bits x) {
  if constexpr (kBits <= 4) {
    sum.low = add_pairs(sum.low, codes.low, x);
  } else {
    sum.low = QSF_EACH(Ints, sum.low.part[i] + sums_of_2(pairs(codes.low.part[i], x.part[i])));
  }
  if constexpr (kBits == 8) sum.top = add_pairs(sum.top, codes.top, x);
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) { return sum + sums_of_2(pairs(codes, x)); }

template <int kBits>
QSF_INLINE Ints total(const Sum<kBits>& sum) {
  const auto widened = [](Ints of) { return QSF_EACH(Ints, sums_of_2((v128_t)of.part[i])); };
  if constexpr (kBits <= 4) return widened(sum.low);
  if constexpr (kBits < 8) return sum.low;
  if constexpr (kBits == 8) return sum.low + bit_cast<Ints>(shift_left<7>(bit_cast<Bits>(widened(sum.top))));
}

}  // namespace
}  // namespace qsf
