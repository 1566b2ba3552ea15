// binary16 to float where no instruction does it, with vectors of 16 bytes. A
// vocabulary defines any_true, whether any bit of a vector is set, before including this.
#pragma once

#include "kernels/vec/lanes.h"

namespace qsf {
namespace {

typedef std::uint16_t HalvesPart __attribute__((vector_size(16)));
typedef std::int16_t SignedHalvesPart __attribute__((vector_size(16)));

/// kValue in every half.
template <std::uint16_t kValue>
QSF_INLINE HalvesPart broadcast_u16() {
  return bit_cast<HalvesPart>(broadcast<kValue * 0x10001u>().part[0]);
}

/// Apart: inlined it would be most of what multiplies.
[[gnu::noinline]] inline Floats load_promote_any_f16(const void* at) { return promote_f16(load_promote_u16(at)); }

/// 16 numbers, nearly always normal ones. Each is made in two halves: the sign, the exponent and 7 bits, then 3 bits.
QSF_INLINE Floats load_promote_f16(const void* at) {
  const HalvesPart half[2] = {load_part<HalvesPart>(static_cast<const std::byte*>(at)),
                              load_part<HalvesPart>(static_cast<const std::byte*>(at) + sizeof(HalvesPart))};
  // Without the sign, an exponent from 1 to 30.
  const auto others = (half[0] + half[0] - broadcast_u16<0x0800>() >= broadcast_u16<0xf000>()) |
                      (half[1] + half[1] - broadcast_u16<0x0800>() >= broadcast_u16<0xf000>());
  if (any_true(bit_cast<HalvesPart>(others))) [[unlikely]]
    return load_promote_any_f16(at);
  HalvesPart to[4];
  unroll<2>([&](auto i) __attribute__((always_inline)) {
    const auto shifted = bit_cast<HalvesPart>(bit_cast<SignedHalvesPart>(half[i]) >> 3);
    const HalvesPart upper = (shifted & broadcast_u16<0x8fff>()) + broadcast_u16<112 << 7>(), lower = half[i] << 13;
    to[2 * i] = __builtin_shufflevector(lower, upper, 0, 8, 1, 9, 2, 10, 3, 11);
    to[2 * i + 1] = __builtin_shufflevector(lower, upper, 4, 12, 5, 13, 6, 14, 7, 15);
  });
  return bit_cast<Floats>(to);
}

}  // namespace
}  // namespace qsf
