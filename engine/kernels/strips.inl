// Strips of quantized weights: codes and scales of their tiles, read group after group together with panels of
// activations. A lane is a row, so that every row has its own accumulator.
#include <algorithm>

#include "formats/sub_scales.h"
#include "formats/trellis.h"

namespace qsf {
namespace {

QSF_INLINE Bits operator&(Bits a, std::uint32_t b) { return a & broadcast(b); }
QSF_INLINE Bits operator^(Bits a, std::uint32_t b) { return QSF_EACH(Bits, a.part[i] ^ b); }
QSF_INLINE Bits operator-(Bits a, std::uint32_t b) { return a - broadcast(b); }
QSF_INLINE Bits operator<<(Bits a, int by) { return QSF_EACH(Bits, a.part[i] << by); }
QSF_INLINE Bits operator>>(Bits a, int by) { return QSF_EACH(Bits, a.part[i] >> by); }

/// The levels of kOf as a table for table_lookup.
template <Levels kOf>
constexpr std::array<std::uint8_t, kTileLoad> kTable = [] {
  std::array<std::uint8_t, kTileLoad> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = kLevels[static_cast<std::size_t>(kOf)][i % 16];
  return table;
}();

/// A table of the trellis for table_lookup. With kTurned the two halves of the index are exchanged.
template <int kCodeBits, int kEntries, bool kTurned>
constexpr std::array<std::uint8_t, kTileLoad> kTrellisTable = [] {
  std::array<std::uint8_t, kTileLoad> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::size_t of = kTurned ? i % 4 * 4 + i % 16 / 4 : i % 16;
    table[i] = trellis_tables(kCodeBits).entries[kEntries][of];
  }
  return table;
}();

/// Joins all planes of the codes of columns 4 kAt .. 4 kAt + 3 of a group. `planes` points to each plane's part of the
/// group.
template <TileKind kKind, int kAt>
QSF_INLINE Bits joined_planes(const std::byte* const (&planes)[kMaxPlanes]) {
  Bits codes = broadcast(0u);
  unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
    constexpr TilePlane plane = tile_planes(kKind.code_bits, kGroup)[decltype(index)::value];
    if constexpr (plane.width != 0) {
      constexpr TileField field = tile_field(plane, 0, kAt * kTileGroup);
      Bits bytes = load<Bits>(planes[decltype(index)::value] + field.byte);
      if constexpr (field.shift != 0) bytes = shift_right<field.shift>(bytes);
      if constexpr (plane.width != 8) bytes = bytes & broadcast<0x01010101u * ((1u << plane.width) - 1)>();
      if constexpr (plane.shift != 0) bytes = shift_left<plane.shift>(bytes);
      codes = codes | bytes;
    }
  });
  return codes;
}

/// Whether the chains of codes of kCodeBits stay within a load of this plane.
template <int kCodeBits>
constexpr bool within_loads(TilePlane plane) {
  return trellis_tables(kCodeBits).chain == kTileGroup * 8 / plane.width;
}

/// Whether four bits from code kCode of a chain on are two bits of a load and two of the next. four_bits() then leaves
/// the bits at their positions in the byte, with the first two above the others.
template <int kCodeBits, int kPlane, int kCode>
constexpr bool kTurned = [] {
  constexpr TilePlane plane = tile_planes(kCodeBits, kGroup)[kPlane];
  if (within_loads<kCodeBits>(plane)) return false;
  return plane.width == 2 && kCode % 4 == 3;
}();

/// Returns four bits of plane kPlane from code kCode of a chain on, in the low half of each byte. load_of(k) returns
/// load k of the plane in a group, or a part of it. A chain continues from one byte to the byte above it in the lane,
/// and from the highest byte to the lowest.
template <int kCodeBits, int kPlane, int kCode, class LoadOf>
QSF_INLINE auto four_bits(LoadOf load_of) {
  using V = decltype(load_of(0));
  constexpr TilePlane plane = tile_planes(kCodeBits, kGroup)[kPlane];
  constexpr int kWidth = plane.width, kLoad = kWidth * kCode / 8, kShift = kWidth * kCode % 8;
  if constexpr (kLoad >= kWidth) {
    return rotate_right<8>(four_bits<kCodeBits, kPlane, kCode - kMaxDots>(load_of));
  } else if constexpr (kTurned<kCodeBits, kPlane, kCode>) {
    const V behind = kLoad + 1 < kWidth ? load_of(kLoad + 1) : rotate_right<8>(load_of(0));
    return (shift_right<4>(load_of(kLoad)) & broadcast<0x0c0c0c0c, V>()) | (behind & broadcast<0x03030303, V>());
  } else {
    // Codes of one bit share a rotation by 4.
    constexpr int kRotated = kShift <= 4 ? 0 : kWidth == 1 && kParts > 1 ? 4 : kShift;
    static_assert(kRotated == 0 || within_loads<kCodeBits>(plane));
    V out = load_of(kLoad);
    if constexpr (kRotated != 0) out = rotate_right<kRotated>(out);
    if constexpr (kShift != kRotated) out = shift_right<kShift - kRotated>(out);
    return out & broadcast<0x0f0f0f0f, V>();
  }
}

/// The codes of a block, group after group, as operands of the dot.
template <TileKind kKind>
class TileCodes {
 public:
  QSF_INLINE TileCodes(const std::byte* codes, const TileShape& shape, std::size_t group = 0) : trits_(codes) {
    if constexpr (kKind.trits) {
      trits_ += group * kMaxDots / kTrits * kTileLoad;
      for (std::size_t n = group * kMaxDots % kTrits; n > 0; --n) next_trits();
    } else {
      std::size_t done = 0;  // bits of the previous planes
      unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
        constexpr TilePlane plane = tile_planes(kKind.code_bits, kGroup)[decltype(index)::value];
        planes_[decltype(index)::value] = codes + kTileRows * kGroup / 8 * (shape.groups * done + group * plane.width);
        done += plane.width;
      });
    }
  }

  /// Returns the levels of columns 4 kAt .. 4 kAt + 3 of the current group. With trits, calls must be in ascending
  /// order.
  template <int kAt>
  QSF_INLINE Bits levels() {
    if constexpr (kKind.trits) {
      return next_trits();
    } else if constexpr (kKind.trellis) {
      return trellis<kAt>([](const std::byte* at) __attribute__((always_inline)) { return load<Bits>(at); });
    } else if constexpr (kKind.levels == Levels::codes) {
      return joined_planes<kKind, kAt>(planes_);
    } else {
      return table_lookup(load<Bits>(kTable<kKind.levels>.data()), joined_planes<kKind, kAt>(planes_));
    }
  }

  /// Returns the bytes that contain the codes of these columns, in one plane.
  template <int kAt>
  QSF_INLINE Bits bytes() const {
    return load<Bits>(planes_[0] + field<kAt>().byte);
  }
  template <int kAt>
  static constexpr TileField field() {
    return tile_field(tile_planes(kKind.code_bits, kGroup)[0], 0, kAt * kTileGroup);
  }

  /// Returns the part of these levels that is `at` bytes after the start of a load.
  template <int kAt>
  QSF_INLINE BitsPart levels_part(std::size_t at) {
    return trellis<kAt>([&](const std::byte* load)
                            __attribute__((always_inline)) { return load_part<BitsPart>(load + at); });
  }

  /// Moves to the next of kOf parts of a group.
  template <int kOf>
  QSF_INLINE void next() {
    if constexpr (kKind.trits) return;
    unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
      constexpr TilePlane plane = tile_planes(kKind.code_bits, kGroup)[decltype(index)::value];
      planes_[decltype(index)::value] += kTileRows * kGroup / 8 * plane.width / kOf;
    });
  }

 private:
  // Tripling a byte carries the next trit out of it; the remaining byte is the fraction for the following trit.
  QSF_INLINE Bits next_trits() {
    if (left_ == 0) {
      fractions_ = load<Bits>(trits_);
      trits_ += kTileLoad;
      left_ = kTrits;
    }
    --left_;
    const Bits fractions = fractions_;
    // LLVM would replace the two additions with a product by 3, which WebAssembly has to compute byte by byte. An
    // opaque term prevents that.
    Bits twice = add_u8(fractions, fractions);
    if constexpr (kDotsInRow) {
      std::uint32_t nothing = 0;
      asm("" : "+r"(nothing));
      twice = twice ^ nothing;
    }
    fractions_ = add_u8(twice, fractions);
    return one_if_gt_u8(fractions, 85) + one_if_gt_u8(fractions, 170);
  }

  // load_at(address) returns 64 bytes, or a part of them.
  template <int kAt, class Load>
  QSF_INLINE auto trellis(Load load_at) {
    constexpr int kBits = kKind.code_bits;
    constexpr const TrellisTables& tables = trellis_tables(kBits);
    const auto entry = [&](auto table, auto plane, auto later) __attribute__((always_inline)) {
      const auto load_of = [&](int k)
                               __attribute__((always_inline)) { return load_at(planes_[plane] + k * kTileLoad); };
      constexpr int kCode = kAt + decltype(later)::value;
      constexpr auto& entries = kTrellisTable<kBits, table, kTurned<kBits, plane, kCode>>;
      return table_lookup(load_at(reinterpret_cast<const std::byte*>(entries.data())),
                          four_bits<kBits, plane, kCode>(load_of));
    };
    constexpr std::integral_constant<int, 0> kFirst;
    const auto first = entry(kFirst, kFirst, kFirst);
    if constexpr (!tables.two) {
      return first;
    } else {
      return first ^ entry(std::integral_constant<int, 1>{}, std::integral_constant<int, tables.plane>{},
                           std::integral_constant<int, tables.later>{});
    }
  }

  const std::byte* planes_[kMaxPlanes] = {};
  const std::byte* trits_;
  Bits fractions_{};
  std::uint32_t left_ = 0;
};

/// Codes of kinds that share a kernel. Levels are unpacked kUnpacked groups at a time into memory.
template <TileKind kKind>
  requires(kKind.shared)
class TileCodes<kKind> {
 public:
  QSF_INLINE TileCodes(const std::byte* codes, const TileShape& shape) : codes_(codes), shape_(shape) {}

  template <int kAt>
  QSF_INLINE Bits levels() {
    if constexpr (kAt == 0) {
      if (at_ == levels_ + sizeof levels_) {
        shape_.unpack(codes_, shape_, group_, levels_);
        group_ += kUnpacked;
        at_ = levels_;
      }
    }
    return load<Bits>(at_ + kAt * kTileLoad);
  }
  template <int kOf>
  QSF_INLINE void next() {
    at_ += kMaxDots / kOf * kTileLoad;
  }

 private:
  const std::byte* codes_;
  const TileShape& shape_;
  std::size_t group_ = 0;
  std::byte levels_[kUnpacked * kMaxDots * kTileLoad];
  const std::byte* at_ = levels_ + sizeof levels_;
};

/// Returns columns 4 kAt .. 4 kAt + 3 of the codes' current group as operands of the dot.
template <TileKind kKind, int kAt, class Codes>
QSF_INLINE auto operands(Codes& codes) {
  constexpr int kBits = kKind.level_bits();
  if constexpr (kKind.in_fields() && requires(Bits bytes) { field_operand<kBits, 0>(bytes); }) {
    return field_operand<kBits, Codes::template field<kAt>().shift>(codes.template bytes<kAt>());
  } else {
    return operand<kBits>(codes.template levels<kAt>());
  }
}

template <TileKind kKind>
void unpack_levels(const std::byte* codes, const TileShape& shape, std::size_t group, std::byte* levels) {
  TileCodes<kKind> unpacked(codes, shape, group);
  for (std::size_t n = std::min(kUnpacked, shape.groups - group); n > 0; --n) {
    unroll<kMaxDots>([&](auto index) __attribute__((always_inline)) {
      store(levels, unpacked.template levels<decltype(index)::value>());
      levels += kTileLoad;
    });
    unpacked.template next<1>();
  }
}

/// Returns 2^x for each stored exponent; power_of_two in formats/blocks.h has the scalar form.
QSF_INLINE Floats powers_of_two(Bits exponents) {
  const Bits half = exponents >> 1, other = (exponents + broadcast(1u)) >> 1;
  return bit_cast<Floats>((half + broadcast(63u)) << 23) * bit_cast<Floats>((other + broadcast(63u)) << 23);
}

/// Returns half of each 8-bit float; half_of_e4m3 in formats/sub_scales.h has the scalar form.
QSF_INLINE Floats halves_of_e4m3(Bits codes) {
  const Bits code = codes & 127u, number = gt(broadcast(127u), code);
  return bit_cast<Floats>(number & code << kE4m3Shift) * broadcast(kE4m3Unit);
}

/// The scales and minima of a block's sub-blocks, or of the whole block, in 16 rows.
template <TileKind kKind>
struct TileScales {
  static constexpr int kCount = kKind.sub == Sub::none ? 1 : static_cast<int>(sub_count(kKind.sub));

  QSF_INLINE Floats scale(std::size_t j) const { return copy_of(scales[kKind.sub == Sub::none ? 0 : j]); }
  QSF_INLINE Floats minimum(std::size_t j) const { return copy_of(minima[kKind.sub == Sub::none ? 0 : j]); }

  Floats scales[kCount];
  Floats minima[kKind.has_min ? kCount : 1];
};

template <TileKind kKind>
QSF_INLINE void read_whole_scale(const std::byte* tile, const TileShape& shape, Floats& scale, Floats& minimum) {
  if constexpr (kKind.scale == Scale::f16) scale = load_promote_f16(tile);
  if constexpr (kKind.scale == Scale::f32) scale = load(tile);
  if constexpr (kKind.scale == Scale::exponent) scale = powers_of_two(load_promote_u8(tile));
  if constexpr (kKind.has_min) minimum = load_promote_f16(tile + shape.minimum_at);
}

/// Reads the sub-scales of a tile. This function is not inlined, because it runs once in 256 columns and would be most
/// of each kernel's code.
template <TileKind kKind>
[[gnu::noinline]] void read_sub_scales(const std::byte* tile, const TileShape& shape, TileScales<kKind>& out) {
  Floats scale = broadcast(1.0f), minimum{};
  if (kKind.sub != Sub::e4m3 || shape.sub_at != 0) read_whole_scale<kKind>(tile, shape, scale, minimum);
  if constexpr (kFewKernels && kKind.sub == Sub::x4) {
    if (shape.sub_at == shape.codes_at) {
      out.scales[0] = scale;
      return;
    }
  }
  const auto byte = [&](int k) __attribute__((always_inline)) {
    return load_promote_u8(tile + shape.sub_at + static_cast<std::size_t>(k) * kTileRows);
  };
  unroll<TileScales<kKind>::kCount>([&](auto index) __attribute__((always_inline)) {
    constexpr int kJ = decltype(index)::value;
    if constexpr (kKind.sub == Sub::e4m3) {
      out.scales[kJ] = scale * halves_of_e4m3(byte(kJ));
      return;
    }
    const Ints packed = bit_cast<Ints>(sub_scale<kKind.sub>(kJ, byte));
    out.scales[kJ] = scale * convert_to<Floats>(packed - broadcast(std::int32_t{sub_bias(kKind.sub)}));
    // GGML subtracts its minimum, so the sign is reversed here.
    if constexpr (kKind.has_min) {
      out.minima[kJ] =
          broadcast(-0.0f) - minimum * convert_to<Floats>(bit_cast<Ints>(sub_minimum<kKind.sub>(kJ, byte)));
    }
  });
}

template <TileKind kKind>
QSF_INLINE void read_scales(const std::byte* tile, const TileShape& shape, TileScales<kKind>& out) {
  if constexpr (kKind.shared && kKind.sub == Sub::grid) {
    shape.unpack_scales(tile, shape, out.scales);
  } else if constexpr (kKind.sub == Sub::none) {
    out.scales[0] = broadcast(1.0f);
    read_whole_scale<kKind>(tile, shape, out.scales[0], out.minima[0]);
  } else {
    read_sub_scales<kKind>(tile, shape, out);
  }
}

template <TileKind kKind>
void unpack_scales(const std::byte* tile, const TileShape& shape, Floats* scales) {
  TileScales<kKind> read;
  read_scales(tile, shape, read);
  for (int j = 0; j < read.kCount; ++j) scales[j] = copy_of(read.scales[j]);
}

inline constexpr std::size_t kLine = 64;

/// Prefetches the weights that dot kAt of a group needs, at both distances of `by`. Weights are read once and in order,
/// and processors by themselves fetch too little ahead while they compute.
template <TileKind kKind, int kAt>
QSF_INLINE void ask_ahead(const std::byte* group, ReadAhead by) {
  if constexpr (kReadsAhead) {
    for (int line = kAt; line < kKind.lines(); line += kMaxDots) {
      __builtin_prefetch(group + kLine * line + by.second, 0, 2);
      __builtin_prefetch(group + kLine * line + by.first, 0, 3);
    }
  }
}

/// The columns of a panel that a pass reads, at one group.
struct PanelPass {
  const std::int8_t* codes;
  const float* d;
  const float* sums;  // kPer for each group
};

/// Sets panels to those from `column` on, at `group`.
template <int kPer, int kPanels>
QSF_INLINE void begin_panels(PanelPass (&panels)[kPanels], const MatmulArgs& a, std::uint32_t column,
                             std::size_t group) {
  unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
    const std::size_t first = a.xq.place(column + p * kPanel, a.n, group);
    const float* const sums = kPer == 1 ? a.xq.sums : a.xq.half_sums;
    panels[p] = {a.xq.codes + first * kGroup, a.xq.d + first, sums + first * kPer};
  });
}

template <class T, int kCount>
struct Several {
  T of[kCount];
};
template <class T, int kCount, class F>
QSF_INLINE Several<T, kCount> several(F f) {
  return each_over<Several<T, kCount>>(f, std::make_index_sequence<kCount>{});
}

/// Calls of(part, codes, scales, sub, lines) for every part of a group that has its own scale, in kStrips strips, and
/// passed() after each group. `lines` is the average address of the group in the first strip, for prefetching.
template <TileKind kKind, int kStrips, class Part, class Passed>
QSF_INLINE void for_each_part(std::size_t n_groups, const TileShape& shape, const std::byte* strip,
                              std::size_t strip_bytes, Part of, Passed passed) {
  const std::byte* tile = strip;
  const std::byte* lines = strip;  // of a group, on average
  for (std::size_t group = 0; group < n_groups; tile += shape.bytes) {
    TileScales<kKind> scales[kStrips];
    unroll<kStrips>(
        [&](auto s) __attribute__((always_inline)) { read_scales<kKind>(tile + s * strip_bytes, shape, scales[s]); });
    auto codes = several<TileCodes<kKind>, kStrips>([&](std::size_t s) __attribute__((always_inline)) {
      return TileCodes<kKind>(tile + s * strip_bytes + shape.codes_at, shape);
    });
    const std::size_t end = group + shape.groups;
    for (std::size_t sub = 0; group < end; ++group, lines += shape.group_bytes) {
      unroll<kKind.per_group()>([&](auto part) __attribute__((always_inline)) {
        of(part, codes, scales, sub, lines);
        ++sub;
      });
      passed();
    }
  }
}

constexpr std::size_t groups_of(std::uint32_t cols) { return (static_cast<std::size_t>(cols) + kGroup - 1) / kGroup; }

/// Whether operand() leaves a constant offset on levels.
template <TileKind kKind>
inline constexpr bool kTakesOffset = kKind.has_offset || dot_bias<kKind.level_bits()> != 0;

/// Returns the offset of levels that operand() has not subtracted.
template <TileKind kKind>
QSF_INLINE float dot_offset(const TileShape& shape) {
  return static_cast<float>(shape.offset - dot_bias<kKind.level_bits()>);
}

/// Converts exact dots of levels to dots of values by subtracting their offset. Both numbers are below 2^24, so the
/// result is exact.
QSF_INLINE Floats values_of(Ints dots, float offset) { return convert_to<Floats>(dots) - broadcast(offset); }

/// Adds the dots of a part with a column to acc. `d` is the column's scale; `dsum` is d times the sum of its codes.
template <bool kHasMin>
QSF_INLINE void add_dots(Floats& acc, Floats dots, Floats scale, Floats minimum, float d, float dsum) {
  acc = acc + (scale * broadcast(d)) * dots;
  if constexpr (kHasMin) acc = acc + minimum * broadcast(dsum);
}

QSF_INLINE void store_strip(const MatmulArgs& a, std::uint32_t row, std::uint32_t column, Floats acc) {
  store_n(a.y + column * static_cast<std::size_t>(a.y_stride) + row, acc, a.rows - row);
}

}  // namespace
}  // namespace qsf
