// The common part of WebAssembly's relaxed SIMD vocabularies: dots of int8 and 7-bit codes. Every machine computes the
// same result if the second operand is within 0..127.
#pragma once

#include "kernels/vector/wasm128.h"

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
