// AVX-512 with VNNI: one vector of 16 lanes, and a dot of unsigned by signed bytes that cannot saturate.
#pragma once

#include <immintrin.h>

namespace qsf {
namespace {
inline constexpr int kParts = 1;
}
}  // namespace qsf

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

inline constexpr int kMaxPass = 8;

QSF_INLINE Floats load_f16(const void* at) {
  return {{_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(static_cast<const __m256i*>(at)))}};
}

QSF_INLINE Bits look_up(Bits table, Bits codes) {
  return QSF_EACH(Bits, (BitsPart)_mm512_shuffle_epi8((__m512i)table.part[i], (__m512i)codes.part[i]));
}

template <int kBits>
using Operand = Bits;
template <int kBits>
using Sum = Ints;
template <int kBits>
inline constexpr std::int32_t taken = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  return codes;
}

template <int kBits>
QSF_INLINE void dot(Ints& sum, Bits codes, Bits x) {
  sum.part[0] = (IntPart)_mm512_dpbusd_epi32((__m512i)sum.part[0], (__m512i)codes.part[0], (__m512i)x.part[0]);
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
