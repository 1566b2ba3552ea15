// AVX2 and F16C: two vectors of 8 lanes. The 8-bit dot (vpmaddubsw) adds pairs of products in saturating int16.
#pragma once

#include <immintrin.h>

namespace qsf {
namespace {
inline constexpr int kParts = 2;
}
}  // namespace qsf

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

inline constexpr int kMaxPass = 4;

QSF_INLINE Floats load_f16(const void* at) {
  const auto* const half = static_cast<const __m128i*>(at);
  return {{_mm256_cvtph_ps(_mm_loadu_si128(half)), _mm256_cvtph_ps(_mm_loadu_si128(half + 1))}};
}

QSF_INLINE Bits look_up(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)_mm256_shuffle_epi8((__m256i)table.part[i], (__m256i)codes.part[i]));
}

// 8-bit codes become signed: a pair is at most 2 * 128 * 127 = 32512. Narrower ones stay unsigned: 2 * 127 * 127.
template <int kBits>
struct Operand {
  Bits code;
};
template <>
struct Operand<8> {
  Bits code;
  Bits magnitude;
};
template <int kBits>
using Sum = Ints;
template <int kBits>
inline constexpr std::int32_t taken = kBits == 8 ? 128 : 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  if constexpr (kBits == 8) {
    const Bits code = QSF_EACH(Bits, codes.part[i] ^ 0x80808080u);
    return {code, QSF_EACH(Bits, (BitsPart)_mm256_abs_epi8((__m256i)code.part[i]))};
  } else {
    return {codes};
  }
}

// Codes up to 4 bits stay in int16 for a whole group: 8 dots of 2 * 15 * 127 are 30480.
template <int kBits>
QSF_INLINE void dot(Ints& sum, const Operand<kBits>& codes, Bits x) {
  unroll<kParts>([&](auto index) __attribute__((always_inline)) {
    constexpr int i = decltype(index)::value;
    __m256i pairs;
    if constexpr (kBits == 8) {
      const __m256i turned = _mm256_sign_epi8((__m256i)x.part[i], (__m256i)codes.code.part[i]);
      pairs = _mm256_maddubs_epi16((__m256i)codes.magnitude.part[i], turned);
    } else {
      pairs = _mm256_maddubs_epi16((__m256i)codes.code.part[i], (__m256i)x.part[i]);
    }
    if constexpr (kBits <= 4) {
      sum.part[i] = (IntPart)_mm256_add_epi16((__m256i)sum.part[i], pairs);
    } else {
      sum.part[i] = sum.part[i] + (IntPart)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    }
  });
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  if constexpr (kBits > 4) return sum;
  return QSF_EACH(Ints, (IntPart)_mm256_madd_epi16((__m256i)sum.part[i], _mm256_set1_epi16(1)));
}

}  // namespace
}  // namespace qsf
