// The dot of WebAssembly without a dot of bytes: products of 16-bit pairs, first of every lane's even bytes, then of
// its odd bytes.
#pragma once

#include "kernels/vector/wasm128.h"

namespace qsf {
namespace {

/// Bytes 0 and 2, and bytes 1 and 3, as 16-bit halves of the lane, multiplied by powers of two.
template <int kEvenShift, int kOddShift>
struct HalvesOperand {
  Bits even;
  Bits odd;
};
/// Sums are 2^kSumShift times the dots: at most 32 * 255 * 127 * 2^8.
inline constexpr int kSumShift = 8;

template <int kShift>
QSF_INLINE Bits shift_right_u16(Bits v) {
  return QSF_EACH(Bits, (BitsPart)wasm_u16x8_shr((v128_t)v.part[i], kShift));
}

QSF_INLINE HalvesOperand<0, 0> halves_operand(Bits codes) {
  return {codes & broadcast<0x00ff00ffu>(), shift_right_u16<8>(codes)};
}

/// Returns the operand of codes that are kBits of each byte from bit kShift on. The codes keep their position, and the
/// activations are shifted instead.
template <int kBits, int kShift>
QSF_INLINE auto halves_field_operand(Bits bytes) {
  constexpr std::uint32_t kCode = 0x00010001u * ((1u << kBits) - 1);
  const Bits even = bytes & broadcast<(kCode << kShift)>();
  if constexpr (kShift == 8 - kBits) {
    return HalvesOperand<kShift, 0>{even, shift_right_u16<8 + kShift>(bytes)};
  } else {
    const Bits low = kShift == 0 ? bytes : shift_right_u16<kShift>(bytes);
    return HalvesOperand<kShift, 8>{even, low & broadcast<(kCode << 8)>()};
  }
}

/// The signed bytes 0 and 2, and 1 and 3, of every lane.
struct EvenOdd {
  v128_t even;
  v128_t odd;
};
/// Multiplies the bytes by 2^(kSumShift - kEvenShift) and 2^(kSumShift - kOddShift).
template <int kEvenShift, int kOddShift>
QSF_INLINE EvenOdd columns(v128_t x) {
  const v128_t even = wasm_i16x8_shl(x, 8);
  return {kEvenShift == 0 ? even : wasm_i16x8_shr(even, kEvenShift),
          kOddShift == 0 ? (v128_t)((BitsPart)x & broadcast<0xff00ff00u, BitsPart>()) : wasm_i16x8_shr(x, kOddShift)};
}

template <int kEvenShift, int kOddShift>
QSF_INLINE void add_halves_dot(Ints& sum, const HalvesOperand<kEvenShift, kOddShift>& codes, Bits x) {
  const auto [even, odd] = columns<kEvenShift, kOddShift>((v128_t)x.part[0]);
  const auto product = [&](std::size_t i) __attribute__((always_inline)) {
    return (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.even.part[i], even) +
           (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.odd.part[i], odd);
  };
  sum = QSF_EACH(Ints, sum.part[i] + product(i));
}
QSF_INLINE Ints total_of_halves(Ints sum) { return QSF_EACH(Ints, sum.part[i] >> kSumShift); }

}  // namespace
}  // namespace qsf
