// The dot of instruction sets that multiply unsigned and signed bytes into int32. Codes are used unchanged.
#pragma once

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

template <int kBits>
using Operand = Bits;
template <int kBits>
using Sum = Ints;
template <int kBits>
inline constexpr std::int32_t dot_bias = 0;

template <int kBits>
QSF_INLINE Operand<kBits> operand(Bits codes) {
  return codes;
}

template <int kBits>
QSF_INLINE void dot(Ints& sum, Bits codes, Bits x) {
  sum = QSF_EACH(Ints, dot_part(sum.part[i], codes.part[i], x.part[i]));
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
