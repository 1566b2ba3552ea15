// AVX2, F16C and FMA.
#pragma once

#include "kernels/vector/ymm.h"
// after the vectors that it uses
#include "kernels/vector/lookups.h"

namespace qsf {
namespace {

inline constexpr CpuBit kNeeds[] = {kYmmSaved, kFma, kF16c, kAvx2};

using Native = __m256i;
QSF_INLINE Native sat_widen_mul_pairwise_add(Native codes, Native x) { return _mm256_maddubs_epi16(codes, x); }
QSF_INLINE Native sums_of_2(Native sums) { return _mm256_madd_epi16(sums, _mm256_set1_epi16(1)); }
QSF_INLINE Native add_i16(Native a, Native b) { return _mm256_add_epi16(a, b); }
QSF_INLINE Native mul_sign_i8(Native x, Native by) { return _mm256_sign_epi8(x, by); }
QSF_INLINE Native abs_i8(Native codes) { return _mm256_abs_epi8(codes); }

}  // namespace
}  // namespace qsf

#include "kernels/dots/pmaddubsw.h"
