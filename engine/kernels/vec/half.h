// binary16 to float where no instruction does it. A vocabulary defines load_i16 before including this.
#pragma once

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

/// Whether all 16 are normal numbers, as weights and scales mostly are.
QSF_INLINE bool all_normal_f16(const void* at) {
  typedef std::uint16_t Eight __attribute__((vector_size(16)));
  Eight half[2];
  __builtin_memcpy(half, at, sizeof half);
  // Without the sign, an exponent from 1 to 30.
  const auto one = bits_as<Eight>(same<0x08000800u>().part[0]), past = bits_as<Eight>(same<0xf000f000u>().part[0]);
  const auto others = (half[0] + half[0] - one >= past) | (half[1] + half[1] - one >= past);
  std::uint64_t words[2];
  __builtin_memcpy(words, &others, sizeof words);
  return (words[0] | words[1]) == 0;
}

QSF_INLINE Floats load_f16(const void* at) {
  if (!all_normal_f16(at)) [[unlikely]]
    return widen_f16(load_u16(at));
  const Bits signed_halves = as_bits(load_i16(at));
  return as_floats((left<13>(signed_halves) & same<0x8fffe000u>()) + same<112u << 23>());
}

}  // namespace
}  // namespace qsf
