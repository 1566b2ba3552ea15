// WebAssembly SIMD (128 bits).
#pragma once

#include "kernels/dots/i16_pairs.h"

namespace qsf {
namespace {

QSF_INLINE BitsPart table_lookup(BitsPart table, BitsPart codes) {
  return (BitsPart)wasm_i8x16_swizzle((v128_t)table, (v128_t)codes);
}

template <int kBits>
using Operand = HalvesOperand<0, 0>;
template <int kBits>
using Sum = Ints;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  return halves_operand(codes);
}
template <int kBits, int kShift>
QSF_INLINE auto field_operand(Bits bytes) {
  return halves_field_operand<kBits, kShift>(bytes);
}
template <int kBits, int kEvenShift, int kOddShift>
QSF_INLINE void dot(Ints& sum, const HalvesOperand<kEvenShift, kOddShift>& codes, Bits x) {
  add_halves_dot(sum, codes, x);
}
template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return total_of_halves(sum);
}

/// The spread activations of a column, in memory. A loop over parts loads them there instead of computing each with
/// three instructions.
template <int kDots>
class SpreadColumn {
 public:
  QSF_INLINE explicit SpreadColumn(const std::int8_t* group) {
    unroll<kDots>(
        [&](auto k) __attribute__((always_inline)) { of_[k] = columns<8, 8>(wasm_v128_load32_splat(group + 4 * k)); });
    asm("" : "+r"(at_));
  }
  template <int kAt>
  QSF_INLINE EvenOdd four() const {
    return at_[kAt];
  }

 private:
  EvenOdd of_[kDots];
  const EvenOdd* at_ = of_;
};

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, const EvenOdd& x) {
  return sum + (IntPart)wasm_i32x4_dot_i16x8((v128_t)(codes & broadcast<0x00ff00ffu, BitsPart>()), x.even) +
         (IntPart)wasm_i32x4_dot_i16x8(wasm_u16x8_shr((v128_t)codes, 8), x.odd);
}

}  // namespace
}  // namespace qsf
