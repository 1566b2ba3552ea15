// The common part of the 64-bit ARM vocabularies: four vectors of 4 lanes, int8 operands.
#pragma once

#include <arm_neon.h>

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

QSF_INLINE Bits load_promote_u16(const void* at) {
  const auto* const from = static_cast<const std::uint16_t*>(at);
  return QSF_EACH(Bits, (BitsPart)vmovl_u16(vld1_u16(from + 4 * i)));
}
QSF_INLINE Bits load_promote_u8(const void* at) {
  const uint8x16_t bytes = vld1q_u8(static_cast<const std::uint8_t*>(at));
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
  const uint16x8_t high = vmovl_high_u8(bytes);
  return {{(BitsPart)vmovl_u16(vget_low_u16(low)), (BitsPart)vmovl_high_u16(low),
           (BitsPart)vmovl_u16(vget_low_u16(high)), (BitsPart)vmovl_high_u16(high)}};
}
QSF_INLINE Ints load_promote_i8(const void* at) {
  const int8x16_t bytes = vld1q_s8(static_cast<const std::int8_t*>(at));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_high_s8(bytes);
  return {{(IntPart)vmovl_s16(vget_low_s16(low)), (IntPart)vmovl_high_s16(low), (IntPart)vmovl_s16(vget_low_s16(high)),
           (IntPart)vmovl_high_s16(high)}};
}
QSF_INLINE void store_demote_u16(void* at, Bits v) {
  auto* const to = static_cast<std::uint16_t*>(at);
  vst1q_u16(to, vuzp1q_u16((uint16x8_t)v.part[0], (uint16x8_t)v.part[1]));
  vst1q_u16(to + 8, vuzp1q_u16((uint16x8_t)v.part[2], (uint16x8_t)v.part[3]));
}
QSF_INLINE void store_demote_i8(void* at, Ints v) {
  const uint16x8_t low = vuzp1q_u16((uint16x8_t)v.part[0], (uint16x8_t)v.part[1]);
  const uint16x8_t high = vuzp1q_u16((uint16x8_t)v.part[2], (uint16x8_t)v.part[3]);
  vst1q_u8(static_cast<std::uint8_t*>(at), vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high));
}
QSF_INLINE Floats load_promote_f16(const void* at) {
  const auto half = load<Narrow<std::uint16_t>>(at);
  return QSF_EACH(Floats, (FloatPart)vcvt_f32_f16((float16x4_t)half.part[i]));
}

QSF_INLINE FloatPart plus_product(FloatPart a, FloatPart b, FloatPart c) { return vfmaq_f32(a, b, c); }

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)vqtbl1q_u8((uint8x16_t)table.part[i], (uint8x16_t)codes.part[i]));
}

// Codes become int8; 128 is subtracted from 8-bit codes.
template <int kBits>
using Operand = Bits;
template <int kBits>
inline constexpr std::int32_t dot_bias = kBits == 8 ? 128 : 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits < 8) return codes;
  return QSF_EACH(Bits, codes.part[i] ^ 0x80808080u);
}

}  // namespace
}  // namespace qsf
