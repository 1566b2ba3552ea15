// 64-bit ARM with the dot product extension.
#pragma once

#include "kernels/vector/neon128.h"

namespace qsf {
namespace {

inline constexpr CpuBit kNeeds[] = {{CpuWord::hwcap, 20}};  // ASIMDDP
inline constexpr int kMaxPass = 4;

template <int kBits>
using Sum = Ints;

template <int kBits>
QSF_INLINE void dot(Ints& sum, Bits codes, Bits x) {
  sum = QSF_EACH(Ints, (IntPart)vdotq_s32((int32x4_t)sum.part[i], (int8x16_t)codes.part[i], (int8x16_t)x.part[i]));
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
