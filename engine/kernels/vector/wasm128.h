// The common part of WebAssembly's vocabularies: four vectors of 4 lanes, binary16 widened by integer steps.
// Conversions are explicit, because the compiler makes general shuffles of them, and V8 builds a constant for each
// shuffle.
#pragma once

#include <wasm_simd128.h>

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;  // a module that was instantiated can run everything in it
inline constexpr int kMaxPass = 4;
template <int kBits>
inline constexpr std::int32_t dot_bias = 0;

QSF_INLINE Bits load_promote_u16(const void* at) {
  const v128_t low = wasm_v128_load(at), high = wasm_v128_load(static_cast<const std::byte*>(at) + sizeof low);
  return {{(BitsPart)wasm_u32x4_extend_low_u16x8(low), (BitsPart)wasm_u32x4_extend_high_u16x8(low),
           (BitsPart)wasm_u32x4_extend_low_u16x8(high), (BitsPart)wasm_u32x4_extend_high_u16x8(high)}};
}
QSF_INLINE Bits load_promote_u8(const void* at) {
  const v128_t bytes = wasm_v128_load(at);
  const v128_t low = wasm_u16x8_extend_low_u8x16(bytes), high = wasm_u16x8_extend_high_u8x16(bytes);
  return {{(BitsPart)wasm_u32x4_extend_low_u16x8(low), (BitsPart)wasm_u32x4_extend_high_u16x8(low),
           (BitsPart)wasm_u32x4_extend_low_u16x8(high), (BitsPart)wasm_u32x4_extend_high_u16x8(high)}};
}
QSF_INLINE Ints load_promote_i8(const void* at) {
  const v128_t bytes = wasm_v128_load(at);
  const v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
  return {{(IntPart)wasm_i32x4_extend_low_i16x8(low), (IntPart)wasm_i32x4_extend_high_i16x8(low),
           (IntPart)wasm_i32x4_extend_low_i16x8(high), (IntPart)wasm_i32x4_extend_high_i16x8(high)}};
}
QSF_INLINE void store_demote_u16(void* at, Bits v) {
  wasm_v128_store(at, wasm_u16x8_narrow_i32x4((v128_t)v.part[0], (v128_t)v.part[1]));
  wasm_v128_store(static_cast<std::byte*>(at) + sizeof(v128_t),
                  wasm_u16x8_narrow_i32x4((v128_t)v.part[2], (v128_t)v.part[3]));
}
QSF_INLINE void store_demote_i8(void* at, Ints v) {
  const v128_t low = wasm_i16x8_narrow_i32x4((v128_t)v.part[0], (v128_t)v.part[1]);
  const v128_t high = wasm_i16x8_narrow_i32x4((v128_t)v.part[2], (v128_t)v.part[3]);
  wasm_v128_store(at, wasm_i8x16_narrow_i16x8(low, high));
}
QSF_INLINE BitsPart table_lookup(BitsPart table, BitsPart codes);  // each vocabulary defines it
QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, table_lookup(table.part[i], codes.part[i]));
}
template <class Part>
QSF_INLINE bool any_true(Part part) {
  return wasm_v128_any_true((v128_t)part);
}

}  // namespace
}  // namespace qsf

#include "kernels/vector/half.h"
#include "kernels/vector/lookups128.h"
