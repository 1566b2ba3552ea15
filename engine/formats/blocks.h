// The parts of a row-major block, for code that makes or tiles blocks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/half.h"
#include "qsf/formats/format.h"

namespace qsf {

inline f16 saturated_f16(float x) { return f32_to_f16(std::clamp(x, -65504.0f, 65504.0f)); }

/// Returns 2^(exponent - 128), the value of a byte of Scale::exponent. It is a product of two factors, because the
/// smallest values are denormal.
constexpr float power_of_two(std::uint32_t exponent) {
  constexpr std::uint32_t kBias = 63, kMantissa = 23;
  const std::uint32_t half = exponent >> 1;
  return std::bit_cast<float>((half + kBias) << kMantissa) *
         std::bit_cast<float>((exponent - half + kBias) << kMantissa);
}
/// Returns the exponent of a power of two of at least 2^-126; the inverse of power_of_two.
constexpr std::uint32_t exponent_of(float power) { return (std::bit_cast<std::uint32_t>(power) >> 23 & 255) + 1; }

/// Stores a scale or minimum as its field declares; stores nothing if the field has no type.
void pack_scale(const Field& field, float value, std::byte* block);
/// Adds sub-block j's packed scale and minimum to a block whose bytes were zero.
void pack_sub_scale(const Format& f, std::uint32_t j, std::uint32_t scale, std::uint32_t minimum, std::byte* block);
/// Adds `block` codes to a block whose bytes were zero.
void pack_codes(const Format& f, std::span<const std::uint8_t> codes, std::byte* block);

void unpack_scales(const Format& f, const std::byte* block, BlockValues& out);
void unpack_codes(const Format& f, const std::byte* block, std::span<std::uint8_t> codes);

/// Returns five trits in a byte: ceil(256 / 243 * number), number = sum of trit[n] * 3^(4 - n). After n triplings
/// modulo 256, the next tripling carries trit n.
constexpr std::byte trit_byte(unsigned number) { return static_cast<std::byte>((number * 256 + 242) / 243); }
constexpr std::uint8_t trit(std::byte byte, std::uint32_t n) {
  auto fraction = static_cast<std::uint8_t>(byte);
  for (std::uint32_t i = 0; i < n; ++i) fraction = static_cast<std::uint8_t>(fraction * 3);
  return static_cast<std::uint8_t>(fraction * 3 >> 8);
}

}  // namespace qsf
