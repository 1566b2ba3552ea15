// The common part of AVX2's two vocabularies: two vectors of 8 lanes, F16C and FMA.
#pragma once

#include <immintrin.h>

namespace qsf {
namespace {
inline constexpr int kParts = 2;
}
}  // namespace qsf

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

inline constexpr CpuBit kYmmSaved{CpuWord::xcr0, 2};
inline constexpr CpuBit kFma{CpuWord::leaf1_ecx, 12};
inline constexpr CpuBit kF16c{CpuWord::leaf1_ecx, 29};
inline constexpr CpuBit kAvx2{CpuWord::leaf7_ebx, 5};
inline constexpr int kMaxPass = 4;

QSF_INLINE __m128i load64(const void* at, std::size_t i) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(static_cast<const std::byte*>(at) + 8 * i));
}
QSF_INLINE __m128i load128(const void* at, std::size_t i) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at) + i);
}
QSF_INLINE Bits load_promote_u8(const void* at) {
  return QSF_EACH(Bits, (BitsPart)_mm256_cvtepu8_epi32(load64(at, i)));
}
QSF_INLINE Bits load_promote_u16(const void* at) {
  return QSF_EACH(Bits, (BitsPart)_mm256_cvtepu16_epi32(load128(at, i)));
}
QSF_INLINE Ints load_promote_i8(const void* at) { return QSF_EACH(Ints, (IntPart)_mm256_cvtepi8_epi32(load64(at, i))); }
QSF_INLINE void store_demote_i8(void* at, Ints v) {
  const __m256i pairs = _mm256_packs_epi32((__m256i)v.part[0], (__m256i)v.part[1]);  // of halves: 0 2 1 3
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  _mm_storeu_si128(static_cast<__m128i*>(at), _mm_shuffle_epi32(bytes, _MM_SHUFFLE(3, 1, 2, 0)));
}
QSF_INLINE void store_demote_u16(void* at, Bits v) {
  const __m256i pairs = _mm256_packus_epi32((__m256i)v.part[0], (__m256i)v.part[1]);
  _mm256_storeu_si256(static_cast<__m256i*>(at), _mm256_permute4x64_epi64(pairs, _MM_SHUFFLE(3, 1, 2, 0)));
}
QSF_INLINE Floats load_promote_f16(const void* at) { return QSF_EACH(Floats, _mm256_cvtph_ps(load128(at, i))); }

QSF_INLINE FloatPart plus_product(FloatPart a, FloatPart b, FloatPart c) { return _mm256_fmadd_ps(b, c, a); }

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)_mm256_shuffle_epi8((__m256i)table.part[i], (__m256i)codes.part[i]));
}

// Lookups take lanes half by half.
template <int kHalf>
QSF_INLINE __m256i half_of(Bits v) {
  return (__m256i)v.part[kHalf];
}
QSF_INLINE Bits of_halves(__m256i low, __m256i high) { return {{(BitsPart)low, (BitsPart)high}}; }

}  // namespace
}  // namespace qsf
