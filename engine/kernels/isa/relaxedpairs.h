// WebAssembly relaxed SIMD on x86 without VNNI. Four products of a lane take five instructions there, and pairs of
// products take one (pmaddubsw). 8-bit codes are multiplied as in plain SIMD.
#pragma once

#include "kernels/dots/i16_pairs.h"
#include "kernels/dots/seven_bit.h"

namespace qsf {
namespace {

template <int kBits>
using Operand = std::conditional_t<kBits == 8, HalvesOperand<0, 0>, Bits>;
template <int kBits>
using Sum = Ints;  // of int16 if codes have at most 4 bits

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits == 8) {
    return halves_operand(codes);
  } else {
    return codes;
  }
}

QSF_INLINE v128_t pairs(BitsPart codes, BitsPart x) {
  return wasm_i16x8_relaxed_dot_i8x16_i7x16((v128_t)x, (v128_t)codes);
}
QSF_INLINE IntPart sums_of_2(v128_t sums) { return (IntPart)wasm_i32x4_extadd_pairwise_i16x8(sums); }

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) { return sum + sums_of_2(pairs(codes, x)); }

/// Sums of codes with up to 4 bits stay in int16 for a whole group: 8 dots of 2 * 15 * 127 are 30480.
template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  if constexpr (kBits == 8) {
    add_halves_dot(sum, codes, x);
  } else if constexpr (kBits > 4) {
    sum = QSF_EACH(Ints, dot_part(sum.part[i], codes.part[i], x.part[i]));
  } else {
    sum = QSF_EACH(Ints, (IntPart)wasm_i16x8_add((v128_t)sum.part[i], pairs(codes.part[i], x.part[i])));
  }
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  if constexpr (kBits == 8) {
    return total_of_halves(sum);
  } else if constexpr (kBits > 4) {
    return sum;
  } else {
    return QSF_EACH(Ints, sums_of_2((v128_t)sum.part[i]));
  }
}

}  // namespace
}  // namespace qsf
