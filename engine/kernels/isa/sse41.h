// SSE4.1: four vectors of 4 lanes, binary16 widened by integer steps.
#pragma once

#include <smmintrin.h>

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

inline constexpr CpuBit kNeeds[] = {{CpuWord::leaf1_ecx, 9},    // SSSE3
                                    {CpuWord::leaf1_ecx, 19}};  // SSE4.1
inline constexpr int kMaxPass = 4;

template <class Part>
QSF_INLINE bool any_true(Part part) {
  return _mm_testz_si128((__m128i)part, (__m128i)part) == 0;
}
QSF_INLINE __m128i load64(const void* at, std::size_t i) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const std::byte*>(at) + 8 * i));
}
QSF_INLINE __m128i load32(const void* at, std::size_t i) {
  std::int32_t four;
  __builtin_memcpy(&four, static_cast<const std::byte*>(at) + 4 * i, sizeof four);
  return _mm_cvtsi32_si128(four);
}
QSF_INLINE Bits load_promote_u8(const void* at) { return QSF_EACH(Bits, (BitsPart)_mm_cvtepu8_epi32(load32(at, i))); }
QSF_INLINE Bits load_promote_u16(const void* at) { return QSF_EACH(Bits, (BitsPart)_mm_cvtepu16_epi32(load64(at, i))); }
QSF_INLINE Ints load_promote_i8(const void* at) { return QSF_EACH(Ints, (IntPart)_mm_cvtepi8_epi32(load32(at, i))); }
QSF_INLINE void store_demote_i8(void* at, Ints v) {
  const __m128i low = _mm_packs_epi32((__m128i)v.part[0], (__m128i)v.part[1]);
  const __m128i high = _mm_packs_epi32((__m128i)v.part[2], (__m128i)v.part[3]);
  _mm_storeu_si128(static_cast<__m128i*>(at), _mm_packs_epi16(low, high));
}
QSF_INLINE void store_demote_u16(void* at, Bits v) {
  auto* const to = static_cast<__m128i*>(at);
  _mm_storeu_si128(to, _mm_packus_epi32((__m128i)v.part[0], (__m128i)v.part[1]));
  _mm_storeu_si128(to + 1, _mm_packus_epi32((__m128i)v.part[2], (__m128i)v.part[3]));
}

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)_mm_shuffle_epi8((__m128i)table.part[i], (__m128i)codes.part[i]));
}

using Native = __m128i;
QSF_INLINE Native sat_widen_mul_pairwise_add(Native codes, Native x) { return _mm_maddubs_epi16(codes, x); }
QSF_INLINE Native sums_of_2(Native sums) { return _mm_madd_epi16(sums, _mm_set1_epi16(1)); }
QSF_INLINE Native add_i16(Native a, Native b) { return _mm_add_epi16(a, b); }
QSF_INLINE Native mul_sign_i8(Native x, Native by) { return _mm_sign_epi8(x, by); }
QSF_INLINE Native abs_i8(Native codes) { return _mm_abs_epi8(codes); }

}  // namespace
}  // namespace qsf

#include "kernels/dots/pmaddubsw.h"
#include "kernels/vector/half.h"
