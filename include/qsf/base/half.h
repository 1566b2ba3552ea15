// Conversions of IEEE binary16 and bfloat16 to float, which are exact, and from float, which round half to even.
#pragma once

#include <bit>
#include <cstdint>

namespace qsf {

using f16 = std::uint16_t;   // bits of an IEEE 754 binary16
using bf16 = std::uint16_t;  // upper half of a float's bits

constexpr float f16_to_f32(f16 h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fu;
  const std::uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(subnormal) | sign);
}

constexpr f16 f32_to_f16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<f16>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<f16>(sign | 0x7e00u);   // NaN
  if (magnitude >= 0x477ff000u) return static_cast<f16>(sign | 0x7c00u);  // rounds to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: adding 0.5 aligns the last kept bit, the addition rounds
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<f16>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<f16>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

constexpr float bf16_to_f32(bf16 b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16); }

constexpr bf16 f32_to_bf16(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16>((bits >> 16) | 0x40u);
  return static_cast<bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace qsf
