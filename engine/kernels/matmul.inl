// Matrix products. Quantized weights come as tiles: a lane is a row, so that every row keeps its own accumulator.
#include <algorithm>
#include <bit>

#include "formats/sub_scales.h"

namespace qsf {
namespace {

/// What of a format shapes its kernel; formats of the same kind share one.
struct TileKind {
  std::uint8_t code_bits;
  bool trits;
  Levels levels;
  Scale scale;
  bool has_min;
  bool has_offset;
  Sub sub;

  /// Bits of a level, as the dot sees it.
  constexpr int level_bits() const {
    return levels == Levels::codes ? code_bits
                                   : std::bit_width(std::ranges::max(kLevels[static_cast<std::size_t>(levels)]));
  }
  /// Cache lines that a group of 32 takes, with its share of the block's numbers.
  constexpr int lines() const { return (trits ? 2 : code_bits) + 1; }
  /// Whether half a group's codes are whole loads of every plane.
  constexpr bool halves() const { return !trits && code_bits % 2 == 0; }
  /// Sub-scales per group of 32.
  constexpr int per_group() const { return sub == Sub::none || sub == Sub::k4 || sub == Sub::x4 ? 1 : 2; }
};

/// Where kernels are to be few, iq4_nl is an iq4_xs without sub-scales.
constexpr TileKind tile_kind(const Format& f) {
  const Sub sub = kFewKernels && f.levels == Levels::iq4_nl ? Sub::x4 : f.sub.kind;
  return {f.code_bits, f.packing == Packing::trits, f.levels, f.scale.type, f.has_min(), f.offset != 0, sub};
}

/// What of a format its kernel takes as numbers.
struct TileShape {
  std::uint32_t groups;  // of 32 columns in a block
  std::uint32_t bytes;
  std::uint32_t group_bytes;  // on average
  std::uint32_t minimum_at;
  std::uint32_t sub_at;
  std::uint32_t codes_at;
  std::int32_t offset;
};

constexpr TileShape tile_shape(const Format& f) {
  return {f.block / kGroup, tile_bytes(f),    tile_bytes(f) * kGroup / f.block,   tile_minimum_at(f),
          tile_sub_at(f),   tile_codes_at(f), static_cast<std::int32_t>(f.offset)};
}

QSF_INLINE Bits operator&(Bits a, std::uint32_t b) { return a & broadcast(b); }
QSF_INLINE Bits operator^(Bits a, std::uint32_t b) { return QSF_EACH(Bits, a.part[i] ^ b); }
QSF_INLINE Bits operator<<(Bits a, int by) { return QSF_EACH(Bits, a.part[i] << by); }
QSF_INLINE Bits operator>>(Bits a, int by) { return QSF_EACH(Bits, a.part[i] >> by); }

/// A table for table_lookup.
template <Levels kOf>
constexpr std::array<std::uint8_t, kTileLoad> kTable = [] {
  std::array<std::uint8_t, kTileLoad> table{};
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = kLevels[static_cast<std::size_t>(kOf)][i % 16];
  return table;
}();

/// Codes of columns 4 kAt .. 4 kAt + 3 of a group, all planes joined. `planes` is where each plane's part of the group
/// begins.
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

/// The codes of a block, group after group, as operands of the dot.
template <TileKind kKind>
class TileCodes {
 public:
  QSF_INLINE TileCodes(const std::byte* codes, const TileShape& shape) : trits_(codes) {
    if constexpr (!kKind.trits) {
      std::size_t done = 0;  // bits of the planes before
      unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
        constexpr TilePlane plane = tile_planes(kKind.code_bits, kGroup)[decltype(index)::value];
        planes_[decltype(index)::value] = codes + kTileRows * kGroup / 8 * shape.groups * done;
        done += plane.width;
      });
    }
  }

  /// Columns 4 kAt .. 4 kAt + 3 of the current group; trits are asked for in order.
  template <int kAt>
  QSF_INLINE Bits levels() {
    if constexpr (kKind.trits) {
      return next_trits();
    } else if constexpr (kKind.levels == Levels::codes) {
      return joined_planes<kKind, kAt>(planes_);
    } else {
      return table_lookup(load<Bits>(kTable<kKind.levels>.data()), joined_planes<kKind, kAt>(planes_));
    }
  }

  /// On by a group's kOf-th part.
  template <int kOf>
  QSF_INLINE void next() {
    if constexpr (kKind.trits) return;
    unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
      constexpr TilePlane plane = tile_planes(kKind.code_bits, kGroup)[decltype(index)::value];
      planes_[decltype(index)::value] += kTileRows * kGroup / 8 * plane.width / kOf;
    });
  }

 private:
  // What tripling a byte carries is its next trit; what stays is the fraction for the one after.
  QSF_INLINE Bits next_trits() {
    if (left_ == 0) {
      fractions_ = load<Bits>(trits_);
      trits_ += kTileLoad;
      left_ = kTrits;
    }
    --left_;
    const Bits fractions = fractions_;
    // LLVM would make a product by 3 of this, and WebAssembly has that of bytes one by one only: it must not know a
    // term.
    Bits twice = add_u8(fractions, fractions);
    if constexpr (kDotsInRow) {
      std::uint32_t nothing = 0;
      asm("" : "+r"(nothing));
      twice = twice ^ nothing;
    }
    fractions_ = add_u8(twice, fractions);
    return one_if_gt_u8(fractions, 85) + one_if_gt_u8(fractions, 170);
  }

  const std::byte* planes_[kMaxPlanes] = {};
  const std::byte* trits_;
  Bits fractions_{};
  std::uint32_t left_ = 0;
};

/// See power_of_two in formats/blocks.h.
QSF_INLINE Floats powers_of_two(Bits exponents) {
  const Bits half = exponents >> 1, other = (exponents + broadcast(1u)) >> 1;
  return bit_cast<Floats>((half + broadcast(63u)) << 23) * bit_cast<Floats>((other + broadcast(63u)) << 23);
}

/// The scales (and minima) of a block's sub-blocks, or of the whole block, in 16 rows.
template <TileKind kKind>
struct TileScales {
  static constexpr int kCount = kKind.sub == Sub::none ? 1 : kMaxBlock / kGroup * kKind.per_group();

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

/// Apart from what multiplies: every number of columns reads them alike, once in 256 columns, and inlined into each it
/// is most of the code.
template <TileKind kKind>
[[gnu::noinline]] void read_sub_scales(const std::byte* tile, const TileShape& shape, TileScales<kKind>& out) {
  Floats scale = broadcast(1.0f), minimum{};
  read_whole_scale<kKind>(tile, shape, scale, minimum);
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
    const Ints packed = bit_cast<Ints>(sub_scale<kKind.sub>(kJ, byte));
    out.scales[kJ] = scale * convert_to<Floats>(packed - broadcast(std::int32_t{sub_bias(kKind.sub)}));
    // GGML's minimum is what is taken away.
    if constexpr (kKind.has_min) {
      out.minima[kJ] =
          broadcast(-0.0f) - minimum * convert_to<Floats>(bit_cast<Ints>(sub_minimum<kKind.sub>(kJ, byte)));
    }
  });
}

template <TileKind kKind>
QSF_INLINE void read_scales(const std::byte* tile, const TileShape& shape, TileScales<kKind>& out) {
  if constexpr (kKind.sub == Sub::none) {
    out.scales[0] = broadcast(1.0f);
    read_whole_scale<kKind>(tile, shape, out.scales[0], out.minima[0]);
  } else {
    read_sub_scales<kKind>(tile, shape, out);
  }
}

// Weights are read once, in order. Processors fetch too little ahead by themselves while they compute: lines are asked
// into the second level of cache from kFar bytes ahead on, and from there into the first kNear bytes ahead.
inline constexpr std::size_t kLine = 64;
inline constexpr std::size_t kFar = 8192;
inline constexpr std::size_t kNear = 1024;

/// A panel's columns that a pass takes, group after group.
struct PanelPass {
  const std::int8_t* codes;
  const float* d;
  const float* sums;  // kPer of a group
};

template <class T, int kCount>
struct Several {
  T of[kCount];
};
template <class T, int kCount, class F>
QSF_INLINE Several<T, kCount> several(F f) {
  return each_over<Several<T, kCount>>(f, std::make_index_sequence<kCount>{});
}

/// kStrips strips of 16 rows, strip_bytes apart (0: one and the same), times kColumns activation columns from `column`
/// on.
template <TileKind kKind, int kColumns, int kStrips>
void strips_times_columns(const MatmulArgs& a, const TileShape& shape, const std::byte* strip, std::size_t strip_bytes,
                          std::uint32_t row, std::uint32_t column) {
  constexpr int kBits = kKind.level_bits();
  constexpr int kPer = kKind.per_group();
  constexpr int kDots = kMaxDots / kPer;
  // Engines of WebAssembly run the dots of a sum in a row, each when the last has its answer: a column alone takes a
  // group in the rounds of a loop, which stay in order and need fewer registers; others have a second sum.
  constexpr int kRounds = kDotsInRow && kColumns == 1 && kPer == 1 && kKind.halves() ? 2 : 1;
  constexpr int kSums = kDotsInRow && kRounds == 1 && kDots == kMaxDots && kBits < 8 ? 2 : 1;
  constexpr int kPanels = kColumns > int{kPanel} ? kColumns / int{kPanel} : 1;
  const std::size_t width = kColumns < int{kPanel} ? a.xq.panel_width(column, a.n) : kPanel;
  PanelPass panels[kPanels];
  unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
    const std::size_t first = a.xq.place(column + p * kPanel, a.n, 0);
    const float* const sums = kPer == 1 ? a.xq.sums : a.xq.half_sums;
    panels[p] = {a.xq.codes + first * kGroup, a.xq.d + first, sums + first * kPer};
  });
  const auto offset = static_cast<float>(shape.offset - dot_bias<kBits>);
  const std::size_t n_groups = (static_cast<std::size_t>(a.cols) + kGroup - 1) / kGroup;

  Floats acc[kStrips][kColumns];
  const auto for_each = [](auto f) __attribute__((always_inline)) {  // strip and column
    unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
      unroll<kColumns>([&](auto c) __attribute__((always_inline)) { f(s, c); });
    });
  };
  for_each([&](auto s, auto c) __attribute__((always_inline)) { acc[s][c] = broadcast(0.0f); });
  const std::byte* tile = strip;
  const std::byte* ahead = strip + kNear;
  for (std::size_t group = 0; group < n_groups; tile += shape.bytes) {
    TileScales<kKind> scales[kStrips];
    unroll<kStrips>(
        [&](auto s) __attribute__((always_inline)) { read_scales<kKind>(tile + s * strip_bytes, shape, scales[s]); });
    auto codes = several<TileCodes<kKind>, kStrips>([&](std::size_t s) __attribute__((always_inline)) {
      return TileCodes<kKind>(tile + s * strip_bytes + shape.codes_at, shape);
    });
    const std::size_t end = group + shape.groups;
    for (std::size_t sub = 0; group < end; ++group, ahead += shape.group_bytes) {
      unroll<kPer>([&](auto part) __attribute__((always_inline)) {
        constexpr int kPart = decltype(part)::value;
        Sum<kBits> sum[kStrips][kColumns][kSums] = {};
        std::uint32_t rounds = kRounds;
        if constexpr (kRounds > 1) asm("" : "+r"(rounds));  // not to be unrolled
        for (const std::int8_t* x = panels[0].codes; rounds != 0; --rounds, x += kGroup / kRounds) {
          unroll<kDots / kRounds>([&](auto index) __attribute__((always_inline)) {
            constexpr int kAt = kPart * kDots + decltype(index)::value;
            unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
              const auto four = operand<kBits>(codes.of[s].template levels<kAt>());
              unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
                constexpr int kC = decltype(c)::value;
                const std::int8_t* const of_panel = kC < int{kPanel} ? x : panels[kC / kPanel].codes;
                dot<kBits>(sum[s][c][kAt % kSums], four, load_broadcast<kAt>(of_panel + kC % kPanel * kGroup));
              });
            });
            if constexpr (kReadsAhead) {
              for (int line = kAt; line < kKind.lines(); line += kMaxDots) {
                __builtin_prefetch(ahead + kLine * line + (kFar - kNear), 0, 2);
                __builtin_prefetch(ahead + kLine * line, 0, 3);
              }
            }
          });
          if constexpr (kPart + 1 == kPer) {
            unroll<kStrips>([&](auto s) __attribute__((always_inline)) { codes.of[s].template next<kRounds>(); });
          }
        }
        for_each([&](auto s, auto c) __attribute__((always_inline)) {
          constexpr int kC = decltype(c)::value;
          const PanelPass& panel = panels[kC / kPanel];
          const float xsum = panel.sums[kC % kPanel * kPer + kPart];
          Ints dots = total<kBits>(sum[s][c][0]);
          if constexpr (kSums == 2) dots = dots + total<kBits>(sum[s][c][1]);
          Floats isum = convert_to<Floats>(dots);  // below 2^24, as all that follows: exact
          if constexpr (kKind.has_offset || dot_bias<kBits> != 0) isum = isum - broadcast(offset * xsum);
          const Floats dx = broadcast(panel.d[kC % kPanel]);
          acc[s][c] = acc[s][c] + (scales[s].scale(sub) * dx) * isum;
          if constexpr (kKind.has_min) acc[s][c] = acc[s][c] + (scales[s].minimum(sub) * dx) * broadcast(xsum);
        });
        ++sub;
      });
      unroll<kPanels>([&](auto p) __attribute__((always_inline)) {
        PanelPass& panel = panels[p];
        panel.codes += width * kGroup;
        panel.d += width;
        panel.sums += width * kPer;
      });
    }
  }
  for_each([&](auto s, auto c) __attribute__((always_inline)) {
    const std::uint32_t at = row + (strip_bytes == 0 ? 0 : s * kTileRows);
    store_n(a.y + (column + c) * static_cast<std::size_t>(a.y_stride) + at, acc[s][c], a.rows - at);
  });
}

template <int kFormat>
QSF_INLINE Floats load_weights(const std::byte* at) {
  constexpr FormatId id = kFormats[kFormat].id;
  if constexpr (id == FormatId::f16) return load_promote_f16(at);
  if constexpr (id == FormatId::bf16) return load_promote_bf16(at);
  return load(at);
}

template <int kFormat>
QSF_INLINE Floats load_weights_n(const std::byte* at, std::size_t n) {
  constexpr std::size_t kBytes = kFormats[kFormat].block_bytes;
  std::byte padded[kLanes * kBytes] = {};
  __builtin_memcpy(padded, at, n * kBytes);
  return load_weights<kFormat>(padded);
}

/// kRows rows from `row` on times kColumns columns from `column` on, of a float format.
template <int kFormat, int kRows, int kColumns>
QSF_INLINE void rows_times_columns(const MatmulArgs& a, std::uint32_t row, std::uint32_t column) {
  constexpr std::size_t kBytes = kFormats[kFormat].block_bytes;
  const std::size_t row_size = a.cols * kBytes;
  const std::byte* const w = a.weights + row * row_size;
  const float* const x = a.x + column * static_cast<std::size_t>(a.x_stride);
  Floats acc[kRows * kColumns];
  unroll<kRows * kColumns>([&](auto i) __attribute__((always_inline)) { acc[decltype(i)::value] = broadcast(0.0f); });
  const auto add = [&](auto&& weights_of_row, auto&& x_of_column) __attribute__((always_inline)) {
    Floats columns[kColumns];
    unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
      columns[decltype(c)::value] = x_of_column(x + decltype(c)::value * static_cast<std::size_t>(a.x_stride));
    });
    unroll<kRows>([&](auto r) __attribute__((always_inline)) {
      const Floats weights = weights_of_row(w + decltype(r)::value * row_size);
      unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
        constexpr int kAt = decltype(r)::value * kColumns + decltype(c)::value;
        acc[kAt] = acc[kAt] + weights * columns[decltype(c)::value];
      });
    });
  };
  std::size_t k = 0;
  for (; k + kLanes <= a.cols; k += kLanes) {
    add([&](const std::byte* of) __attribute__((always_inline)) { return load_weights<kFormat>(of + k * kBytes); },
        [&](const float* of) __attribute__((always_inline)) { return load(of + k); });
  }
  if (const std::size_t n = a.cols - k; n != 0) {
    add([&](const std::byte* of) __attribute__((always_inline)) { return load_weights_n<kFormat>(of + k * kBytes, n); },
        [&](const float* of) __attribute__((always_inline)) { return load_n(of + k, n); });
  }
  unroll<kRows * kColumns>([&](auto i) __attribute__((always_inline)) {
    constexpr int kR = decltype(i)::value / kColumns;
    constexpr int kC = decltype(i)::value % kColumns;
    a.y[(column + kC) * static_cast<std::size_t>(a.y_stride) + row + kR] = reduce_sum(acc[decltype(i)::value]);
  });
}

/// 16 rows of a float format from `row` on.
template <int kFormat, int kColumns>
void strip_of_floats(const MatmulArgs& a, std::uint32_t row, std::uint32_t column) {
  constexpr int kRows = kColumns >= 4 ? 1 : 4 / kColumns;
  const std::uint32_t end = a.rows - row < kTileRows ? a.rows : row + kTileRows;
  for (; end - row >= kRows; row += kRows) rows_times_columns<kFormat, kRows, kColumns>(a, row, column);
  for (; row < end; ++row) rows_times_columns<kFormat, 1, kColumns>(a, row, column);
}

/// pass(kColumns, column) until all columns are served, as many in a pass as registers hold.
template <int kMost = kMaxPass, class Pass>
QSF_INLINE void for_columns(std::uint32_t n, Pass pass) {
  std::uint32_t column = 0;
  unroll<4>([&](auto index) __attribute__((always_inline)) {
    constexpr std::uint32_t kColumns = 8u >> decltype(index)::value;
    if constexpr (kColumns <= kMost && (kColumns != 2 || kPassesOfTwo)) {
      for (; n - column >= kColumns; column += kColumns) pass(std::integral_constant<int, kColumns>{}, column);
    }
  });
}

/// Strips of `rows`, 0 for none; no sum that might wrap.
constexpr std::uint32_t strips_of(std::uint32_t rows) { return rows / kTileRows + (rows % kTileRows != 0 ? 1 : 0); }

/// All columns of a strip before the next: a strip is read from memory once. A column alone goes over several strips
/// side by side where nothing can be read ahead: processors follow each of them.
template <TileKind kKind>
void matmul_tiles(const MatmulArgs& a, const TileShape& shape) {
  constexpr std::uint32_t kStrips = kReadsAhead ? 1 : 2;
  const std::size_t blocks = (a.cols + kGroup * shape.groups - 1) / (kGroup * shape.groups);
  const std::size_t strip_bytes = blocks * shape.bytes;
  const std::uint32_t strips = strips_of(a.rows);
  for (std::uint32_t strip = 0; strip < strips; strip += kStrips) {
    const std::byte* const at = a.weights + strip * strip_bytes;
    const std::uint32_t row = strip * kTileRows, here = std::min(strips - strip, kStrips);
    for_columns(a.n, [&](auto columns, std::uint32_t column) {
      if constexpr (columns == 1 && kStrips > 1) {
        // A last strip alone is its own neighbour.
        strips_times_columns<kKind, 1, kStrips>(a, shape, at, here == kStrips ? strip_bytes : 0, row, column);
      } else {
        for (std::uint32_t s = 0; s < here; ++s) {
          strips_times_columns<kKind, columns, 1>(a, shape, at + s * strip_bytes, strip_bytes, row + s * kTileRows,
                                                  column);
        }
      }
    });
  }
}

template <int kFormat>
void matmul(const MatmulArgs& a) {
  constexpr Format f = kFormats[kFormat];
  if constexpr (f.quantized()) {
    static constexpr TileShape kShape = tile_shape(f);
    matmul_tiles<tile_kind(f)>(a, kShape);
  } else {
    for (std::uint32_t strip = 0; strip < strips_of(a.rows); ++strip) {
      for_columns(a.n, [&](auto columns, std::uint32_t column) {
        strip_of_floats<kFormat, columns>(a, strip * kTileRows, column);
      });
    }
  }
}

}  // namespace
}  // namespace qsf
