// The integer scales and minima of sub-blocks, as GGML's K-quants and IQ4_XS pack them. One description, in terms of
// bytes, serves single blocks and tiles; for tiles a "byte" is a vector of 16 rows' bytes.
#pragma once

#include <cstdint>

#include "qsf/formats/format.h"

namespace qsf {

/// Bytes of packed sub-scales in a block.
constexpr std::uint32_t sub_bytes(Sub kind) {
  return kind == Sub::none ? 0 : kind == Sub::x4 ? 6 : kind == Sub::k3 || kind == Sub::k4 ? 12 : 16;
}
/// Returns the number that is subtracted from a packed scale.
constexpr int sub_bias(Sub kind) { return kind == Sub::k3 || kind == Sub::x4 ? 32 : kind == Sub::k6 ? 128 : 0; }
/// Returns the largest packed scale and minimum.
constexpr int sub_top(Sub kind) { return kind == Sub::k2 ? 15 : kind == Sub::k6 ? 255 : 63; }

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
