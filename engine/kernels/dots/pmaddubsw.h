// The dot of x86 without VNNI (pmaddubsw): unsigned bytes times signed bytes, with pairs of products added in
// saturating int16. A vocabulary defines these operations on a native vector: sat_widen_mul_pairwise_add(u8, i8),
// sums_of_2(i16) to int32, add_i16(i16, i16), mul_sign_i8(i8, i8) by the second's sign, abs_i8(i8).
#pragma once

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

// 8-bit codes become signed, so that a pair is at most 2 * 128 * 127 = 32512. Narrower codes stay unsigned, with at
// most 2 * 127 * 127.
template <int kBits>
struct Operand {
  Bits code;
};
template <>
struct Operand<8> {
  Bits code;
  Bits magnitude;
};
template <int kBits>
using Sum = Ints;
template <int kBits>
inline constexpr std::int32_t dot_bias = kBits == 8 ? 128 : 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits == 8) {
    const Bits code = QSF_EACH(Bits, codes.part[i] ^ 0x80808080u);
    return {code, QSF_EACH(Bits, (BitsPart)abs_i8((Native)code.part[i]))};
  } else {
    return {codes};
  }
}

// Sums of codes with up to 4 bits stay in int16 for a whole group: 8 dots of 2 * 15 * 127 are 30480.
template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  unroll<kParts>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    const auto code = (Native)codes.code.part[i];
    if constexpr (kBits == 8) {
      const Native products =
          sat_widen_mul_pairwise_add((Native)codes.magnitude.part[i], mul_sign_i8((Native)x.part[i], code));
      sum.part[i] = sum.part[i] + (IntPart)sums_of_2(products);
    } else if constexpr (kBits > 4) {
      sum.part[i] = sum.part[i] + (IntPart)sums_of_2(sat_widen_mul_pairwise_add(code, (Native)x.part[i]));
    } else {
      sum.part[i] = (IntPart)add_i16((Native)sum.part[i], sat_widen_mul_pairwise_add(code, (Native)x.part[i]));
    }
  });
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  if constexpr (kBits > 4) return sum;
  return QSF_EACH(Ints, (IntPart)sums_of_2((Native)sum.part[i]));
}

}  // namespace
}  // namespace qsf
