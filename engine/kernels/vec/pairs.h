// The dot of x86 without VNNI (pmaddubsw): unsigned bytes times signed ones, pairs of products added in saturating
// int16. Over these, of a native vector, which a vocabulary defines: pairs(u8, i8), joined(i16) to int32, added(i16,
// i16), turned(i8, i8) by the second's sign, magnitudes(i8).
#pragma once

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

// 8-bit codes become signed: a pair is at most 2 * 128 * 127 = 32512. Narrower ones stay unsigned: 2 * 127 * 127.
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
inline constexpr std::int32_t taken = kBits == 8 ? 128 : 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits == 8) {
    const Bits code = QSF_EACH(Bits, codes.part[i] ^ 0x80808080u);
    return {code, QSF_EACH(Bits, (BitsPart)magnitudes((Native)code.part[i]))};
  } else {
    return {codes};
  }
}

// Codes up to 4 bits stay in int16 for a whole group: 8 dots of 2 * 15 * 127 are 30480.
template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  unroll<kParts>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    const auto code = (Native)codes.code.part[i];
    if constexpr (kBits == 8) {
      const Native products = pairs((Native)codes.magnitude.part[i], turned((Native)x.part[i], code));
      sum.part[i] = sum.part[i] + (IntPart)joined(products);
    } else if constexpr (kBits > 4) {
      sum.part[i] = sum.part[i] + (IntPart)joined(pairs(code, (Native)x.part[i]));
    } else {
      sum.part[i] = (IntPart)added((Native)sum.part[i], pairs(code, (Native)x.part[i]));
    }
  });
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  if constexpr (kBits > 4) return sum;
  return QSF_EACH(Ints, (IntPart)joined((Native)sum.part[i]));
}

}  // namespace
}  // namespace qsf
