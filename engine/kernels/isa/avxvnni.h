// AVX2 with VNNI in its own encoding: a dot of unsigned and signed bytes that cannot saturate.
#pragma once

#include "kernels/vector/ymm.h"
// after the vectors that it uses
#include "kernels/vector/lookups.h"

namespace qsf {
namespace {

inline constexpr CpuBit kNeeds[] = {kYmmSaved, kFma, kF16c, kAvx2, {CpuWord::leaf7_1_eax, 4}};

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  return (IntPart)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)codes, (__m256i)x);
}

}  // namespace
}  // namespace qsf

#include "kernels/dots/unsigned_by_signed.h"
