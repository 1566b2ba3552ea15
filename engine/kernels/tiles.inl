// Products with matrix tiles, for vocabularies that have them. Tiles are loaded and stored through memory, and memory
// written just before has to be waited for. Therefore a span is unpacked for many columns first, then many dots are
// computed, and then the dots are scaled and added.

namespace qsf {
namespace {

/// Columns in a pass of tiles; 0 for vocabularies without tiles.
inline constexpr int kTilePass = MatrixTiles<Ints>::kColumns;
static_assert(kTilePass % kPanel == 0 && (kTilePass == 0 || kSpanColumns % kTilePass == 0));
inline constexpr int kTileStrips = 2;  // that share one gathering of activations

/// The memory of a product with tiles, small enough for the first level of cache.
template <TileKind kKind>
struct TileSpan {
  struct Columns {
    std::int8_t codes[kSpan][kTilePass][kGroup];
    float d[kSpan][kTilePass];
    float sums[kKind.has_min ? UnpackedSpan<kKind>::kParts : 1][kTilePass];  // of their codes, times d, by part
  };

  UnpackedSpan<kKind> strips[kTileStrips];
  std::int32_t dots[kTileStrips][kSpan][kTilePass][kLanes];
  alignas(kLine) Columns columns[2];  // of this pass, and of the next one
};

/// Copies `n_groups` of kTilePass columns from `column` on out of their panels, where columns alternate group by group.
template <TileKind kKind>
void gather_columns(typename TileSpan<kKind>::Columns& out, const MatmulArgs& a, std::uint32_t column,
                    std::size_t group, std::size_t n_groups) {
  constexpr int kPer = kKind.per_group();
  static_assert(kPanel * kGroup == 2 * sizeof(Bits));
  for (std::uint32_t c = 0; c < kTilePass; c += kPanel) {
    const std::size_t first = a.xq.place(column + c, a.n, group);
    for (std::size_t g = 0; g < n_groups; ++g) {
      const std::size_t at = first + g * kPanel;
      const std::int8_t* const codes = a.xq.codes + at * kGroup;
      const Bits low = load<Bits>(codes), high = load<Bits>(codes + sizeof(Bits));
      store(out.codes[g][c], low);
      store(out.codes[g][c] + sizeof(Bits), high);
      __builtin_memcpy(out.d[g] + c, a.xq.d + at, kPanel * sizeof(float));
      if constexpr (kKind.has_min) {
        const float* const sums = (kPer == 1 ? a.xq.sums : a.xq.half_sums) + at * kPer;
        for (std::uint32_t i = 0; i < kPer * kPanel; ++i) {
          out.sums[g * kPer + i % kPer][c + i / kPer] = sums[i] * a.xq.d[at + i / kPer];
        }
      }
    }
  }
}

/// Multiplies `n` parts from `part` on and stores the dots.
template <TileKind kKind, class Tiles>
void multiply_parts(Tiles& tiles, TileSpan<kKind>& span, const typename TileSpan<kKind>::Columns& x, std::size_t part,
                    std::size_t n) {
  constexpr int kPer = kKind.per_group();
  for (std::size_t p = 0; p < n; ++p) {
    const std::size_t at = part + p;
    tiles.load_columns(x.codes[at / kPer][0] + at % kPer * (kGroup / kPer));
    unroll<kTileStrips>([&](auto s) __attribute__((always_inline)) {
      tiles.template multiply<decltype(s)::value>(span.strips[s].levels[at], span.dots[s][p]);
    });
  }
}

/// Scales the stored dots and adds them to the sums of the columns from `column` on.
template <TileKind kKind>
void add_parts(TileSpan<kKind>& span, const typename TileSpan<kKind>::Columns& x, std::size_t part, std::size_t n,
               std::uint32_t column) {
  constexpr int kPer = kKind.per_group();
  for (int s = 0; s < kTileStrips; ++s) {
    UnpackedSpan<kKind>& strip = span.strips[s];
    Floats sums[kTilePass];
    unroll<kTilePass>([&](auto c) __attribute__((always_inline)) { sums[c] = load(strip.sums[column + c]); });
    for (std::size_t p = 0; p < n; ++p) {
      const std::size_t at = part + p;
      const Floats scale = load(strip.scales[at]);
      const Floats minimum = load(strip.minima[kKind.has_min ? at : 0]);
      unroll<kTilePass>([&](auto c) __attribute__((always_inline)) {
        const Floats dots = convert_to<Floats>(load<Ints>(span.dots[s][p][c]));
        add_dots<kKind.has_min>(sums[c], dots, scale, minimum, x.d[at / kPer][c], x.sums[kKind.has_min ? at : 0][c]);
      });
    }
    unroll<kTilePass>([&](auto c) __attribute__((always_inline)) { store(strip.sums[column + c], sums[c]); });
  }
}

/// Adds the products of a span with `columns` columns from `first` on to the span's sums.
template <TileKind kKind, class Tiles>
void add_span(Tiles& tiles, TileSpan<kKind>& span, const MatmulArgs& a, std::uint32_t first, std::uint32_t columns,
              std::size_t group, std::size_t n_groups) {
  const std::size_t parts = n_groups * kKind.per_group();
  gather_columns<kKind>(span.columns[0], a, first, group, n_groups);
  std::size_t now = 0;
  for (std::uint32_t column = 0; column < columns; column += kTilePass, now ^= 1) {
    const std::uint32_t next = column + kTilePass;
    for (std::size_t part = 0; part < parts; part += kSpan) {
      const std::size_t n = std::min(parts - part, std::size_t{kSpan});
      multiply_parts(tiles, span, span.columns[now], part, n);
      if (part == 0 && next < columns) gather_columns<kKind>(span.columns[now ^ 1], a, first + next, group, n_groups);
      add_parts(span, span.columns[now], part, n, column);
    }
  }
}

/// Multiplies kTileStrips strips, strip_bytes apart (0: the same strip twice), with the first `columns` columns, which
/// must be a multiple of kTilePass.
template <TileKind kKind, class Tiles>
void strips_times_tiles(Tiles& tiles, const MatmulArgs& a, const TileShape& shape, const std::byte* strip,
                        std::size_t strip_bytes, std::uint32_t row, std::uint32_t columns) {
  const std::size_t n_groups = whole_groups(a.cols, shape);
  TileSpan<kKind> span;
  for (std::uint32_t first = 0; first < columns; first += kSpanColumns) {
    const std::uint32_t here = std::min(columns - first, kSpanColumns);
    for (auto& of : span.strips) __builtin_memset(of.sums, 0, here * sizeof of.sums[0]);
    for (std::size_t group = 0; group < n_groups; group += kSpan) {
      const std::size_t groups = std::min(n_groups - group, std::size_t{kSpan});
      for (std::size_t s = 0; s < kTileStrips; ++s) {
        unpack_span<kKind, true>(span.strips[s], shape, strip + s * strip_bytes + group / shape.groups * shape.bytes,
                                 groups);
      }
      add_span(tiles, span, a, first, here, group, groups);
    }
    for (std::uint32_t s = 0; s < (strip_bytes == 0 ? 1 : kTileStrips); ++s) {
      for (std::uint32_t c = 0; c < here; ++c) {
        store_strip(a, row + s * kTileRows, first + c, load(span.strips[s].sums[c]));
      }
    }
  }
}

}  // namespace
}  // namespace qsf
