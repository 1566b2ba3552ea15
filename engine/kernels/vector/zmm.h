// The common part of AVX-512's two vocabularies: one vector of 16 lanes, and a dot of unsigned and signed bytes that
// cannot saturate.
#pragma once

#include <immintrin.h>

namespace qsf {
namespace {
inline constexpr int kParts = 1;
}
}  // namespace qsf

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

inline constexpr CpuBit kAvx512Vnni[] = {{CpuWord::xcr0, 2},         // the system saves ymm,
                                         {CpuWord::xcr0, 5},         // masks,
                                         {CpuWord::xcr0, 6},         // the upper halves of zmm 0 to 15
                                         {CpuWord::xcr0, 7},         // and zmm 16 to 31
                                         {CpuWord::leaf1_ecx, 29},   // F16C
                                         {CpuWord::leaf7_ebx, 5},    // AVX2
                                         {CpuWord::leaf7_ebx, 16},   // AVX512F
                                         {CpuWord::leaf7_ebx, 17},   // DQ
                                         {CpuWord::leaf7_ebx, 30},   // BW
                                         {CpuWord::leaf7_ebx, 31},   // VL
                                         {CpuWord::leaf7_ecx, 11}};  // VNNI
inline constexpr int kMaxPass = 8;
inline constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns of the undefined operand of unmasked forms

QSF_INLINE __m128i load128(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
QSF_INLINE __m256i load256(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
QSF_INLINE Bits load_promote_u8(const void* at) { return {{(BitsPart)_mm512_maskz_cvtepu8_epi32(kAll, load128(at))}}; }
QSF_INLINE Bits load_promote_u16(const void* at) {
  return {{(BitsPart)_mm512_maskz_cvtepu16_epi32(kAll, load256(at))}};
}
QSF_INLINE Ints load_promote_i8(const void* at) { return {{(IntPart)_mm512_maskz_cvtepi8_epi32(kAll, load128(at))}}; }
QSF_INLINE void store_demote_i8(void* at, Ints v) {
  _mm_storeu_si128(static_cast<__m128i*>(at), _mm512_maskz_cvtepi32_epi8(kAll, (__m512i)v.part[0]));
}
QSF_INLINE void store_demote_u16(void* at, Bits v) {
  _mm256_storeu_si256(static_cast<__m256i*>(at), _mm512_maskz_cvtepi32_epi16(kAll, (__m512i)v.part[0]));
}
QSF_INLINE Floats load_promote_f16(const void* at) { return {{_mm512_maskz_cvtph_ps(kAll, load256(at))}}; }

QSF_INLINE Floats in_register(Floats v) {
  asm("" : "+v"(v.part[0]));
  return v;
}
QSF_INLINE FloatPart plus_product(FloatPart a, FloatPart b, FloatPart c) { return _mm512_fmadd_ps(b, c, a); }

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return {{(BitsPart)_mm512_shuffle_epi8((__m512i)table.part[0], (__m512i)codes.part[0])}};
}

/// Returns the values at the places that the lowest four bits of each lane state.
QSF_INLINE Floats values_at(Floats values, Bits places) {
  return {{_mm512_maskz_permutexvar_ps(kAll, (__m512i)places.part[0], values.part[0])}};
}

/// Returns `yes` in the bytes that have a bit of `each`, `no` in the others.
QSF_INLINE BitsPart select_bytes(BitsPart bits, BitsPart each, BitsPart yes, BitsPart no) {
  return (BitsPart)_mm512_mask_blend_epi8(_mm512_test_epi8_mask((__m512i)bits, (__m512i)each), (__m512i)no,
                                          (__m512i)yes);
}

// Lookups take lanes half by half.
template <int kHalf>
QSF_INLINE __m256i half_of(Bits v) {
  constexpr int k = kHalf * kLanes / 2;
  const BitsPart all = v.part[0];
  return (__m256i)__builtin_shufflevector(all, all, k, k + 1, k + 2, k + 3, k + 4, k + 5, k + 6, k + 7);
}
QSF_INLINE Bits of_halves(__m256i low, __m256i high) {
  typedef PartOf<std::uint32_t, kLanes / 2>::type Half;
  return {{__builtin_shufflevector((Half)low, (Half)high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}};
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  return (IntPart)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)codes, (__m512i)x);
}

}  // namespace
}  // namespace qsf

#include "kernels/dots/unsigned_by_signed.h"
