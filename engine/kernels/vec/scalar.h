// Plain C++, one lane after another: what every other vocabulary must equal.
#pragma once

#define QSF_INLINE \
  inline  // 16 parts to everything: forced inlining would make the compiler slow and the code no faster

namespace qsf {
namespace {
inline constexpr int kParts = 16;
}
}  // namespace qsf

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

inline constexpr int kMaxPass = 1;

QSF_INLINE Floats load_f16(const void* at) { return widen_f16(load_u16(at)); }

QSF_INLINE Bits look_up(const Bits& table, Bits codes) {
  for (std::uint32_t& lane : codes.part) {
    std::uint32_t found = 0;
    for (int byte = 0; byte < 32; byte += 8) {
      const std::uint32_t code = lane >> byte & 15;
      found |= (table.part[code / 4] >> code % 4 * 8 & 0xff) << byte;
    }
    lane = found;
  }
  return codes;
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
QSF_INLINE void dot(Ints& sum, const Bits& codes, const Bits& x) {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int byte = 0; byte < 32; byte += 8) {
      const auto code = static_cast<std::uint8_t>(codes.part[lane] >> byte);
      const auto value = static_cast<std::int8_t>(x.part[lane] >> byte);
      sum.part[lane] += code * value;
    }
  }
}

template <int kBits>
QSF_INLINE Ints total(Ints sum) {
  return sum;
}

}  // namespace
}  // namespace qsf
