// Plain C++, one lane after another. Every other vocabulary must compute the same bits.
#pragma once

#define QSF_INLINE \
  inline  // every operation has 16 parts: forced inlining would slow down the compiler and not speed up the code

namespace qsf {
namespace {
inline constexpr int kParts = 16;
}
}  // namespace qsf

#include "kernels/vector/convert.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;
inline constexpr int kMaxPass = 1;

QSF_INLINE Floats load_promote_f16(const void* at) { return promote_f16(load_promote_u16(at)); }

QSF_INLINE Bits table_lookup(const Bits& table, Bits codes) {
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

inline IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  for (int byte = 0; byte < 32; byte += 8) {
    sum += static_cast<std::uint8_t>(codes >> byte) * static_cast<std::int8_t>(x >> byte);
  }
  return sum;
}

}  // namespace
}  // namespace qsf

#include "kernels/dots/unsigned_by_signed.h"
