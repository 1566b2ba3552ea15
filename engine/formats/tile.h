// A tile: 16 rows of one block, with the size of 16 row-major blocks. The block's numbers are first, each as 16
// consecutive values, one for each row: scale, minimum, then the bytes of packed sub-scales. The codes follow, in bit
// planes of 4, 2 and 1 bits; 8-bit codes are one plane. Each plane is stored whole, low bits first. In a plane, 64
// bytes contain 16 rows x 4 columns once for each field of the plane's width, so that one load serves 8 / width groups
// of 4 columns. Trits are stored five in a byte instead. A grid's block has no planes: the tile has each of its bytes
// as 16 consecutive bytes, one for each row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "formats/sub_scales.h"
#include "qsf/formats/format.h"

namespace qsf {

inline constexpr std::uint32_t kTileGroup = 4;  // consecutive columns in a byte group
inline constexpr std::uint32_t kTileLoad = 64;  // bytes of 16 rows x 4 columns
inline constexpr std::uint32_t kMaxPlanes = 3;  // 7 = 4 + 2 + 1
inline constexpr std::uint32_t kTrits = 5;      // in a byte

constexpr std::uint32_t scale_bytes(Scale type) {
  constexpr std::array<std::uint32_t, 4> kBytes{0, 2, 4, 1};
  return kBytes[static_cast<std::size_t>(type)];
}

constexpr std::uint32_t tile_minimum_at(const Format& f) { return kTileRows * scale_bytes(f.scale.type); }
constexpr std::uint32_t tile_sub_at(const Format& f) {
  return tile_minimum_at(f) + kTileRows * scale_bytes(f.minimum.type);
}
/// Returns the offset of the codes; of a grid's block, that of the block.
constexpr std::uint32_t tile_codes_at(const Format& f) {
  return f.grid != Grid::none ? 0 : tile_sub_at(f) + kTileRows * sub_bytes(f.sub.kind);
}
constexpr std::uint32_t tile_bytes(const Format& f) { return kTileRows * f.block_bytes; }

struct TilePlane {
  std::uint32_t width;   // bits of a code in this plane; 0: no such plane
  std::uint32_t shift;   // their position in the code
  std::uint32_t offset;  // of the plane, in bytes from the first code plane of the tile
};

constexpr std::array<TilePlane, kMaxPlanes> tile_planes(std::uint32_t code_bits, std::uint32_t block) {
  std::array<TilePlane, kMaxPlanes> planes{};
  std::uint32_t offset = 0;
  std::uint32_t done = 0;
  for (std::size_t i = 0; i < kMaxPlanes && done < code_bits; ++i) {
    std::uint32_t width = code_bits - done;
    if (width != 8) width = width >= 4 ? 4 : width >= 2 ? 2 : 1;
    planes[i] = {width, done, offset};
    offset += kTileRows * block * width / 8;
    done += width;
  }
  return planes;
}

struct TileField {
  std::uint32_t byte;   // from the plane's start
  std::uint32_t shift;  // of the field in that byte
};

constexpr TileField tile_field(const TilePlane& plane, std::uint32_t row, std::uint32_t column) {
  const std::uint32_t group = column / kTileGroup;
  const std::uint32_t fields = 8 / plane.width;
  return {group / fields * kTileLoad + row * kTileGroup + column % kTileGroup, group % fields * plane.width};
}

/// Numbers of a block that follow each other and are stored by themselves in a tile, each as one of 16 rows.
struct TileNumbers {
  std::uint32_t at;       // of the first one in a block
  std::uint32_t tile_at;  // of the first row's first one in a tile
  std::uint32_t width;    // bytes of each
  std::uint32_t n = 1;
};

/// Calls body(TileNumbers) for all numbers of a block.
template <class F>
void for_each_number(const Format& f, F body) {
  if (f.grid != Grid::none) return body(TileNumbers{0, 0, 1, f.block_bytes});
  if (f.scale.type != Scale::none) body(TileNumbers{f.scale.at, 0, scale_bytes(f.scale.type)});
  if (f.has_min()) body(TileNumbers{f.minimum.at, tile_minimum_at(f), scale_bytes(f.minimum.type)});
  if (f.sub.kind != Sub::none) body(TileNumbers{f.sub.at, tile_sub_at(f), 1, sub_bytes(f.sub.kind)});
}

/// The byte of a trit, and the trit's index among the five of that byte.
struct TileTrit {
  std::uint32_t byte;
  std::uint32_t index;
};
constexpr TileTrit tile_trit(std::uint32_t row, std::uint32_t column) {
  const std::uint32_t group = column / kTileGroup;
  return {group / kTrits * kTileLoad + row * kTileGroup + column % kTileGroup, group % kTrits};
}

}  // namespace qsf
