// Conversion of binary16 to float without an instruction for it, in vectors of 16 bytes. Before including this file, a
// vocabulary defines any_true, which states whether any bit of a vector is set.
#pragma once

#include "kernels/vector/lanes.h"

namespace qsf {
namespace {

typedef std::uint16_t HalvesPart __attribute__((vector_size(16)));
typedef std::int16_t SignedHalvesPart __attribute__((vector_size(16)));

/// Returns kValue in every half.
template <std::uint16_t kValue>
QSF_INLINE HalvesPart broadcast_u16() {
  return bit_cast<HalvesPart>(broadcast<kValue * 0x10001u>().part[0]);
}

/// Converts any 16 numbers. This function is not inlined, because it would be most of a kernel's code.
[[gnu::noinline]] inline Floats load_promote_any_f16(const void* at) { return promote_f16(load_promote_u16(at)); }

/// Converts 16 numbers, which are nearly always normal. Each result is composed of two halves: the sign, the exponent
/// and 7 bits, then 3 bits.
QSF_INLINE Floats load_promote_f16(const void* at) {
  const HalvesPart half[2] = {load_part<HalvesPart>(static_cast<const std::byte*>(at)),
                              load_part<HalvesPart>(static_cast<const std::byte*>(at) + sizeof(HalvesPart))};
  // True for numbers whose exponent is not in 1 to 30, without regard to the sign.
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
