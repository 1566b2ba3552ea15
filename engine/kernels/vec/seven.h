// What the vocabularies of WebAssembly's relaxed SIMD share: dots of int8 by 7-bit codes, whose answer every machine
// agrees on while the second operand stays within 0..127. 8-bit codes go in as their low 7 bits and their top bit.
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
inline constexpr std::int32_t dot_bias = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits < 8) {
    return {codes};
  } else {
    return {codes & broadcast<0x7f7f7f7fu>(), shift_right<7>(codes) & broadcast<0x01010101u>()};
  }
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

}  // namespace
}  // namespace qsf
