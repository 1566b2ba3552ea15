// A vocabulary for a test: four vectors of 4 lanes, in plain C++.
#pragma once

namespace qsf {
namespace {
inline constexpr int kParts = 4;
}
}  // namespace qsf

#include "kernels/vec/convert.h"

namespace qsf {
namespace {

inline constexpr std::span<const CpuBit> kNeeds;
inline constexpr int kMaxPass = 1;

QSF_INLINE Floats load_promote_f16(const void* at) { return promote_f16(load_promote_u16(at)); }

QSF_INLINE Bits table_lookup(Bits table, Bits codes) {
  std::uint8_t entries[kLanes * 4];
  std::uint8_t bytes[kLanes * 4];
  store(entries, table);
  store(bytes, codes);
  for (std::uint8_t& byte : bytes) byte = entries[byte];
  return load<Bits>(bytes);
}

QSF_INLINE IntPart dot_part(IntPart sum, BitsPart codes, BitsPart x) {
  for (int byte = 0; byte < 32; byte += 8) {
    sum = sum + (IntPart)(codes >> byte & 0xff) * ((IntPart)(x << (24 - byte)) >> 24);
  }
  return sum;
}

}  // namespace
}  // namespace qsf

#include "kernels/vec/whole.h"
