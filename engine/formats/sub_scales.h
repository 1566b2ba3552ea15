// The scales and minima of sub-blocks, as GGML's K-quants, IQ4_XS and NVFP4 pack them: integers, or 8-bit floats. One
// description, in terms of bytes, serves single blocks and tiles; for tiles a "byte" is a vector of 16 rows' bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "qsf/formats/format.h"

namespace qsf {

/// Bytes of packed sub-scales in a block.
constexpr std::uint32_t sub_bytes(Sub kind) {
  constexpr std::array<std::uint32_t, 8> kBytes{0, 16, 12, 12, 16, 6, 4, 0};
  return kBytes[static_cast<std::size_t>(kind)];
}
/// Returns the sub-blocks of a block, which all formats of a kind have.
constexpr std::uint32_t sub_count(Sub kind) {
  return kind == Sub::e4m3 ? 4 : kind == Sub::k4 || kind == Sub::x4 ? 8 : 16;
}
/// Returns the number that is subtracted from a packed scale.
constexpr int sub_bias(Sub kind) { return kind == Sub::k3 || kind == Sub::x4 ? 32 : kind == Sub::k6 ? 128 : 0; }
/// Returns the largest packed scale and minimum.
constexpr int sub_top(Sub kind) { return kind == Sub::k2 ? 15 : kind == Sub::k6 ? 255 : 63; }

// The bits of an 8-bit float, kE4m3Shift up, are those of a float that is 2^120 times smaller.
inline constexpr int kE4m3Shift = 20;
inline constexpr float kE4m3Unit = 0x1p119f;

/// Returns the packed scale of sub-block j. byte(k) returns byte k of the packed run, in a type with &, |, ^, << and
/// >>.
template <Sub kKind, class Byte>
constexpr auto sub_scale(int j, Byte byte) {
  if constexpr (kKind == Sub::k2) {
    return byte(j) & 15u;
  } else if constexpr (kKind == Sub::k3) {
    const auto low = j < 8 ? byte(j) & 15u : byte(j - 8) >> 4;
    return low | (((byte(8 + j % 4) >> (2 * (j / 4))) & 3u) << 4);
  } else if constexpr (kKind == Sub::k4) {
    return j < 4 ? byte(j) & 63u : (byte(j + 4) & 15u) | ((byte(j - 4) >> 6) << 4);
  } else if constexpr (kKind == Sub::x4) {
    return (byte(2 + j / 2) >> (4 * (j % 2)) & 15u) | ((byte(j / 4) >> (2 * (j % 4)) & 3u) << 4);
  } else {
    return byte(j) ^ 128u;  // int8
  }
}

/// Returns half of an unsigned float with 4 bits of exponent and 3 of mantissa, exactly. The top bit is ignored, and
/// the code for no number counts as 0, as in GGML.
constexpr float half_of_e4m3(std::uint32_t code) {
  code &= 127;
  return code == 127 ? 0.0f : std::bit_cast<float>(code << kE4m3Shift) * kE4m3Unit;
}

/// Returns the packed minimum of sub-block j, for the kinds that have one.
template <Sub kKind, class Byte>
constexpr auto sub_minimum(int j, Byte byte) {
  if constexpr (kKind == Sub::k2) {
    return byte(j) >> 4;
  } else {
    return j < 4 ? byte(j + 4) & 63u : (byte(j + 4) >> 4) | ((byte(j) >> 6) << 4);
  }
}

}  // namespace qsf
