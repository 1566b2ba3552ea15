// Where a tile keeps the code of (row, column): codes are cut into bit planes of 4, 2 and 1 bits (8-bit codes are one
// plane), each plane stored whole, low bits first. In a plane, 64 bytes hold 16 rows x 4 columns once per field of the
// plane's width, so that one load serves 8 / width groups of 4 columns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/format.h"

namespace qsf {

inline constexpr std::uint32_t kTileGroup = 4;   // columns side by side in a byte group
inline constexpr std::uint32_t kTileLoad = 64;   // bytes of 16 rows x 4 columns
inline constexpr std::uint32_t kMaxPlanes = 3;   // 7 = 4 + 2 + 1
inline constexpr std::uint32_t kTileScale = 32;  // bytes of 16 fp16

struct TilePlane {
  std::uint32_t width;   // bits of a code that this plane holds; 0: no such plane
  std::uint32_t shift;   // where they stand in the code
  std::uint32_t offset;  // of the plane, in bytes from the tile's start
};

constexpr std::array<TilePlane, kMaxPlanes> tile_planes(const Format& f) {
  std::array<TilePlane, kMaxPlanes> planes{};
  std::uint32_t offset = kTileScale * (f.has_min ? 2 : 1);
  std::uint32_t done = 0;
  for (std::size_t i = 0; i < kMaxPlanes && done < f.code_bits; ++i) {
    std::uint32_t width = f.code_bits - done;
    if (width != 8) width = width >= 4 ? 4 : width >= 2 ? 2 : 1;
    planes[i] = {width, done, offset};
    offset += kTileRows * f.block * width / 8;
    done += width;
  }
  return planes;
}

constexpr std::uint32_t tile_bytes(const Format& f) { return kTileRows * f.block_bytes; }

struct TileField {
  std::uint32_t byte;   // from the plane's start
  std::uint32_t shift;  // of the field in that byte
};

constexpr TileField tile_field(const TilePlane& plane, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t group = column / kTileGroup;
  const std::uint32_t fields = 8 / plane.width;
  return {group / fields * kTileLoad + row * kTileGroup + column % kTileGroup, group % fields * plane.width};
}

}  // namespace qsf
