// WebAssembly SIMD (128 bits): a product of 16-bit pairs, of every lane's even bytes and of its odd ones.
#pragma once

#include "kernels/vec/wasm.h"

namespace qsf {
namespace {

QSF_INLINE BitsPart table_lookup(BitsPart table, BitsPart codes) {
  return (BitsPart)wasm_i8x16_swizzle((v128_t)table, (v128_t)codes);
}
QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, table_lookup(table.part[i], codes.part[i]));
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
  return {codes & broadcast<0x00ff00ffu>(), QSF_EACH(Bits, (BitsPart)wasm_u16x8_shr((v128_t)codes.part[i], 8))};
}

/// Signed bytes 0 and 2, and 1 and 3, of every lane.
struct EvenOdd {
  v128_t even;
  v128_t odd;
};
QSF_INLINE EvenOdd columns(v128_t x) { return {wasm_i16x8_shr(wasm_i16x8_shl(x, 8), 8), wasm_i16x8_shr(x, 8)}; }

template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  const auto [even, odd] = columns((v128_t)x.part[0]);
  const auto product = [&](std::size_t i) __attribute__((always_inline)) {
    return (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.even.part[i], even) +
           (IntPart)wasm_i32x4_dot_i16x8((v128_t)codes.odd.part[i], odd);
  };
  sum = QSF_EACH(Ints, sum.part[i] + product(i));
}

/// From memory, where a loop over parts finds what takes three instructions each.
template <int kDots>
class SpreadColumn {
 public:
  QSF_INLINE explicit SpreadColumn(const std::int8_t* group) {
    unroll<kDots>([&](auto k)
                      __attribute__((always_inline)) { of_[k] = columns(wasm_v128_load32_splat(group + 4 * k)); });
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

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
