// Numbers that are none.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace qsf {

/// Whether none of the values is an infinity or a NaN.
inline bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t found = 0;  // without a branch, so that compilers take many at a time
  for (const float value : values) found |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1u : 0u;
  return found == 0;
}

}  // namespace qsf
