// Lookups of words by vectors of numbers with WebAssembly's vectors, one load for each word.
#pragma once

#include <wasm_simd128.h>

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

/// The numbers in memory: extracting them from a vector takes longer than loads.
struct Numbers {
  QSF_INLINE explicit Numbers(Bits v) {
    __builtin_memcpy(at, &v, sizeof at);
    asm("" : "+m"(at));
  }
  alignas(16) std::uint32_t at[kLanes];
};

QSF_INLINE v128_t two_words(const std::uint64_t* table, const std::uint32_t* numbers) {
  return wasm_v128_load64_lane(table + numbers[1], wasm_v128_load64_zero(table + numbers[0]), 1);
}
/// Returns the low halves of words in `low`, the high halves in `high`.
QSF_INLINE void lookup(const std::uint64_t* table, Bits numbers, Bits& low, Bits& high) {
  const Numbers of(numbers);
  unroll<kParts>([&](auto part) __attribute__((always_inline)) {
    const std::uint32_t* const rows = of.at + part * kLanes / kParts;
    const v128_t a = two_words(table, rows), b = two_words(table, rows + 2);
    low.part[part] = (BitsPart)wasm_i32x4_shuffle(a, b, 0, 2, 4, 6);
    high.part[part] = (BitsPart)wasm_i32x4_shuffle(a, b, 1, 3, 5, 7);
  });
}

QSF_INLINE Bits lookup(const std::uint32_t* table, Bits numbers) {
  const Numbers of(numbers);
  Bits out;
  unroll<kParts>([&](auto part) __attribute__((always_inline)) {
    const std::uint32_t* const rows = of.at + part * kLanes / kParts;
    v128_t words = wasm_v128_load32_zero(table + rows[0]);
    words = wasm_v128_load32_lane(table + rows[1], words, 1);
    words = wasm_v128_load32_lane(table + rows[2], words, 2);
    out.part[part] = (BitsPart)wasm_v128_load32_lane(table + rows[3], words, 3);
  });
  return out;
}

}  // namespace
}  // namespace qsf
