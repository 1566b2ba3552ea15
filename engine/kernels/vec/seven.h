// What the vocabularies of WebAssembly's relaxed SIMD share: dots of int8 by 7-bit codes, whose answer every machine
// agrees on while the second operand stays within 0..127.
#pragma once

#include "kernels/vec/wasm.h"

namespace qsf {
namespace {

QSF_INLINE BitsPart table_lookup(BitsPart table, BitsPart codes) {
  return (BitsPart)wasm_i8x16_relaxed_swizzle((v128_t)table, (v128_t)codes);
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
