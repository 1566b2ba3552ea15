// Kinds of tiles: the properties of a format that a kernel is compiled for, and the numbers that it reads at run time.
#include <algorithm>
#include <bit>

#include "formats/trellis.h"

namespace qsf {
namespace {

inline constexpr int kMostOfGrid = 3;  // bits of a weight in most grids

/// The properties of a format that select its kernel. Formats of the same kind share a kernel.
struct TileKind {
  std::uint8_t code_bits;
  bool trits;
  bool trellis;
  bool shared;  // levels are read from the memory that TileShape::unpack has written, and scales if sub is a grid's
  Levels levels;
  Scale scale;
  bool has_min;
  bool has_offset;
  Sub sub;

  /// Returns the bits of a level as the dot sees it.
  constexpr int level_bits() const {
    if (trellis || shared) return kTrellisBits;
    return levels == Levels::codes ? code_bits
                                   : std::bit_width(std::ranges::max(kLevels[static_cast<std::size_t>(levels)]));
  }
  /// Whether levels are codes in a single plane, with a whole number of codes in a byte.
  constexpr bool in_fields() const {
    return !trits && !trellis && !shared && levels == Levels::codes && code_bits < 8 && std::has_single_bit(code_bits);
  }
  /// Returns the cache lines of a group of 32 columns, including its share of the block's scales.
  constexpr int lines() const { return (trits ? 2 : sub == Sub::grid ? kMostOfGrid : code_bits) + 1; }
  /// Whether half a group's codes are whole loads of every plane, without a chain that continues in the other half.
  constexpr bool halves() const {
    if (trellis) return trellis_tables(code_bits).chain < kGroup;
    return shared || (!trits && code_bits % 2 == 0);
  }
  /// Whether codes and scales are unpacked once for many columns. Unpacking must cost more than storing and loading
  /// levels, and the build must not need few kernels.
  constexpr bool in_spans() const {
    return !kFewKernels &&
           (trits || trellis || sub != Sub::none || (code_bits != 8 && !std::has_single_bit(code_bits)));
  }
  /// Returns the number of sub-scales in a group of 32.
  constexpr int per_group() const { return sub == Sub::none || sub == Sub::k4 || sub == Sub::x4 ? 1 : 2; }
};

/// Returns the kind of a format by itself. In builds with few kernels, iq4_nl is an iq4_xs without sub-scales. Formats
/// whose sub-scales are 8-bit floats are of one kind, with a scale or without one.
constexpr TileKind own_kind(const Format& f) {
  const Sub sub = kFewKernels && f.levels == Levels::iq4_nl ? Sub::x4 : f.sub.kind;
  const Scale scale = sub == Sub::e4m3 ? Scale::f32 : f.scale.type;
  const bool trits = f.packing == Packing::trits, trellis = f.packing == Packing::trellis;
  return {f.code_bits, trits, trellis, false, f.levels, scale, f.has_min(), f.offset != 0, sub};
}
/// Returns the kind of the kernel that multiplies a format. One kernel serves all grids. In builds with few kernels,
/// one serves all rare formats that differ only in how levels come from codes, and the grids' serves 8-bit scales.
constexpr TileKind tile_kind(const Format& f) {
  const TileKind own = own_kind(f);
  if (f.grid != Grid::none || (kFewKernels && own.sub == Sub::e4m3)) {
    return {kTrellisBits, false, false, true, Levels::codes, Scale::none, false, true, Sub::grid};
  }
  const bool rare =
      own.trits || (own.trellis && own.code_bits == 3) || own.levels == Levels::signs || own.levels == Levels::no_zero;
  if (!kFewKernels || !rare || own.scale != Scale::f16 || own.has_min || !own.has_offset || own.sub != Sub::none)
    return own;
  return {kTrellisBits, false, false, true, Levels::codes, Scale::f16, false, true, Sub::none};
}

/// Returns the kind of the kernel for a single column. Trellis formats unpack their own levels there, because unpacking
/// takes less time than memory needs to deliver the weights.
constexpr TileKind alone_kind(const Format& f) {
  const TileKind own = own_kind(f);
  return own.trellis ? own : tile_kind(f);
}

/// The numbers of a format that its kernel reads at run time.
struct TileShape {
  std::uint32_t groups;  // of 32 columns in a block
  std::uint32_t bytes;
  std::uint32_t group_bytes;  // on average
  std::uint32_t minimum_at;
  std::uint32_t sub_at;
  std::uint32_t codes_at;
  std::int32_t offset;
  /// Writes the levels of the next groups of a block, from `group` on, kUnpacked at most.
  void (*unpack)(const std::byte* codes, const TileShape& shape, std::size_t group, std::byte* levels);
  /// Writes a scale for every 16 columns of a tile.
  void (*unpack_scales)(const std::byte* tile, const TileShape& shape, Floats* scales);
};
inline constexpr std::size_t kUnpacked = 4;

template <TileKind kKind>
void unpack_levels(const std::byte* codes, const TileShape& shape, std::size_t group, std::byte* levels);
template <TileKind kKind>
void unpack_scales(const std::byte* tile, const TileShape& shape, Floats* scales);
template <Grid kGrid>
void unpack_grid_levels(const std::byte* tile, const TileShape& shape, std::size_t group, std::byte* levels);
template <Grid kGrid>
void unpack_grid_scales(const std::byte* tile, const TileShape& shape, Floats* scales);

template <int kFormat>
constexpr TileShape tile_shape() {
  constexpr const Format& f = kFormats[kFormat];
  TileShape out{f.block / kGroup, tile_bytes(f),    tile_bytes(f) * kGroup / f.block,    tile_minimum_at(f),
                tile_sub_at(f),   tile_codes_at(f), static_cast<std::int32_t>(f.offset), nullptr,
                nullptr};
  if constexpr (f.grid != Grid::none) {
    out.unpack = unpack_grid_levels<f.grid>;
    out.unpack_scales = unpack_grid_scales<f.grid>;
  } else if constexpr (tile_kind(f).shared) {
    out.unpack = unpack_levels<own_kind(f)>;
    if constexpr (tile_kind(f).sub == Sub::grid) out.unpack_scales = unpack_scales<own_kind(f)>;
  }
  return out;
}

}  // namespace
}  // namespace qsf
