// Matrix products. The table shows the function that multiplies each share of a call's n columns.
//
//   format      columns                                         function               strips at a time
//   float       all                                             strip_of_floats        1
//   quantized   whole tile passes, with MatrixTiles             strips_times_tiles     kTileStrips
//   in_spans()  whole passes of kMaxPass, without MatrixTiles,  strip_in_spans         1
//               if n > kMaxPass
//   quantized   the remaining columns, in passes of kMaxPass    strips_times_columns   1
//               columns and fewer
//                 a pass of kMaxPass in WebAssembly             strip_times_pass       1
//                 columns_alone(n) in WebAssembly               halves_times_column    2
//
// All columns are multiplied with a strip before the next strip, so that a strip is read from memory once; the columns
// of halves_times_column follow after the last strip. dots_of_part computes the integer dots of every function except
// strip_of_floats and strips_times_tiles.
#include <algorithm>
#include <optional>

namespace qsf {
namespace {

/// Calls f(s, c) for every sum of kStrips strips and kColumns columns.
template <int kStrips, int kColumns, class F>
QSF_INLINE void for_each_sum(F f) {
  unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
    unroll<kColumns>([&](auto c) __attribute__((always_inline)) { f(s, c); });
  });
}

/// Computes the dots of a group of kStrips strips and one column. A load is processed in parts of 16 bytes.
template <int kDots, int kStrips, class Codes>
QSF_INLINE void dots_by_parts(Ints (&dots)[kStrips], Codes& codes, const std::int8_t* group) {
  constexpr int kSums = 2;  // two sums, so that a dot does not wait for the previous one
  const SpreadColumn<kDots> x(group);
  std::size_t at = 0;
  do {
    asm("" : "+r"(at));  // keeps the compiler from unrolling
    IntPart sums[kStrips][kSums] = {};
    unroll<kDots>([&](auto index) __attribute__((always_inline)) {
      constexpr int kAt = decltype(index)::value;
      const auto four = x.template four<kAt>();
      unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
        IntPart& sum = sums[s][kAt % kSums];
        sum = dot_part(sum, codes.of[s].template levels_part<kAt>(at), four);
      });
    });
    unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
      const IntPart sum = sums[s][0] + sums[s][1];
      __builtin_memcpy(reinterpret_cast<std::byte*>(&dots[s]) + at, &sum, sizeof sum);
    });
    at += sizeof(IntPart);
  } while (at != sizeof(Ints));
}

/// The number of panels that hold kColumns columns.
template <int kColumns>
inline constexpr int kPanelsOf = kColumns > int{kPanel} ? kColumns / int{kPanel} : 1;

/// Calls f(s, c, dots) with the exact dots of part kPart of a group, for kStrips strips and kColumns columns. The last
/// part of a group moves the codes to the next group.
template <TileKind kKind, int kStrips, int kColumns, int kPart, class Codes, class Lines, class F>
QSF_INLINE void dots_of_part(Codes& codes, const PanelPass (&panels)[kPanelsOf<kColumns>], Lines lines, ReadAhead by,
                             F f) {
  constexpr int kBits = kKind.level_bits();
  constexpr int kPer = kKind.per_group();
  constexpr int kDots = kMaxDots / kPer;
  // WebAssembly engines keep few registers. For one column the group is computed in two rounds of a loop, because the
  // rounds stay in order and need half as many registers.
  constexpr int kRounds = kDotsInRow && kColumns == 1 && kPer == 1 && kKind.halves() ? 2 : 1;
  if constexpr (kByParts && kKind.trellis && kColumns == 1) {
    static_assert(kPer == 1);
    Ints dots[kStrips];
    dots_by_parts<kDots>(dots, codes, panels[0].codes);
    unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
      codes.of[s].template next<1>();
      f(s, std::integral_constant<int, 0>{}, dots[s]);
    });
    return;
  }
  Sum<kBits> sum[kStrips][kColumns] = {};
  std::uint32_t rounds = kRounds;
  if constexpr (kRounds > 1) asm("" : "+r"(rounds));  // keeps the compiler from unrolling
  for (const std::int8_t* x = panels[0].codes; rounds != 0; --rounds, x += kGroup / kRounds) {
    unroll<kDots / kRounds>([&](auto index) __attribute__((always_inline)) {
      constexpr int kAt = kPart * kDots + decltype(index)::value;
      unroll<kStrips>([&](auto s) __attribute__((always_inline)) {
        const auto four = operands<kKind, kAt>(codes.of[s]);
        unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
          constexpr int kC = decltype(c)::value;
          const std::int8_t* const of_panel = kC < int{kPanel} ? x : panels[kC / kPanel].codes;
          dot<kBits>(sum[s][c], four, load_broadcast<kAt>(of_panel + kC % kPanel * kGroup));
        });
      });
      if constexpr (!std::is_null_pointer_v<Lines>) ask_ahead<kKind, kAt>(lines, by);
    });
    if constexpr (kPart + 1 == kPer) {
      unroll<kStrips>([&](auto s) __attribute__((always_inline)) { codes.of[s].template next<kRounds>(); });
    }
  }
  for_each_sum<kStrips, kColumns>([&](auto s, auto c)
                                      __attribute__((always_inline)) { f(s, c, total<kBits>(sum[s][c])); });
}

/// The panels that a pass of kColumns columns reads, at one group.
template <TileKind kKind, int kColumns>
struct PanelsPass {
  static constexpr int kPer = kKind.per_group();

  QSF_INLINE PanelsPass(const MatmulArgs& a, std::uint32_t column, std::size_t group)
      : width(kColumns < int{kPanel} ? a.xq.panel_width(column, a.n) : kPanel) {
    begin_panels<kPer>(of, a, column, group);
  }
  QSF_INLINE void next_group() {
    unroll<kPanelsOf<kColumns>>([&](auto p) __attribute__((always_inline)) {
      of[p].codes += width * kGroup;
      of[p].d += width;
      of[p].sums += width * kPer;
    });
  }

  PanelPass of[kPanelsOf<kColumns>];
  std::size_t width;
};

/// The sums of a group's activation codes, scaled for add_dots: one value for each part of each of kColumns columns.
template <TileKind kKind, int kColumns>
class GroupSums {
 public:
  QSF_INLINE void read(const PanelPass (&panels)[kPanelsOf<kColumns>], float offset) {
    unroll<kPanelsOf<kColumns>>([&](auto p) __attribute__((always_inline)) {
      unroll<kOfPanel / kAtOnce>([&](auto index) __attribute__((always_inline)) {
        constexpr int kFirst = index * kAtOnce, kAt = p * kOfPanel + kFirst;
        const auto sums = load_part<Part>(reinterpret_cast<const std::byte*>(panels[p].sums + kFirst));
        if constexpr (kTakesOffset<kKind>) put(offset_ + kAt, sums * offset);
        if constexpr (kKind.has_min) put(scaled_ + kAt, sums * scales<kFirst>(panels[p].d));
      });
    });
    // The values go through memory, because a load spreads one value to all lanes. Extracting it from a lane of a
    // vector would take as long as the vector saves.
    if constexpr (kAtOnce > 1 && !kDotsInRow) asm("" : "+m"(offset_), "+m"(scaled_));
  }
  /// Returns the sum of the codes times the levels' offset.
  QSF_INLINE float offset(int column, int part) const {
    return offset_[kTakesOffset<kKind> ? column * kPer + part : 0];
  }
  /// Returns the sum of the codes times the scale of the column.
  QSF_INLINE float scaled(int column, int part) const { return scaled_[kKind.has_min ? column * kPer + part : 0]; }

 private:
  static constexpr int kPer = kKind.per_group();
  static constexpr int kCount = kColumns * kPer;
  static constexpr int kOfPanel = kCount / kPanelsOf<kColumns>;
  static constexpr int kAtOnce = kOfPanel < 4 ? 1 : 4;
  using Part = PartOf<float, kAtOnce>::type;

  QSF_INLINE static void put(float* at, Part v) { __builtin_memcpy(at, &v, sizeof v); }
  template <int kFirst>
  QSF_INLINE static Part scales(const float* d) {
    constexpr int k = kFirst / kPer;
    if constexpr (kAtOnce == 1) {
      return d[k];
    } else {
      const auto four = load_part<Part>(reinterpret_cast<const std::byte*>(d));
      if constexpr (kPer == 1) return four;
      return __builtin_shufflevector(four, four, k, k, k + 1, k + 1);
    }
  }

  alignas(sizeof(Part)) float offset_[kTakesOffset<kKind> ? kCount : 1] = {};
  alignas(sizeof(Part)) float scaled_[kKind.has_min ? kCount : 1] = {};
};

/// Adds products to the sums of kStrips strips with the columns from `column` on. for_parts(add, passed) supplies the
/// parts from `group` on, as for_each_part does.
template <TileKind kKind, int kStrips, int kColumns, class ForParts>
QSF_INLINE void add_products(Floats (&acc)[kStrips][kColumns], const MatmulArgs& a, const TileShape& shape,
                             std::uint32_t column, std::size_t group, ForParts for_parts) {
  PanelsPass<kKind, kColumns> panels(a, column, group);
  const float offset = dot_offset<kKind>(shape);
  // Activations of more than a panel leave no room in the first level of cache for weights that are far ahead.
  [[maybe_unused]] const ReadAhead by = kColumns > int{kPanel} || a.n > kPanel ? kBothLevels : read_ahead;

  GroupSums<kKind, kColumns> sums;
  const auto add = [&](auto part, auto& codes, const auto& scales, std::size_t sub,
                       auto lines) __attribute__((always_inline)) {
    if constexpr (part == 0) sums.read(panels.of, offset);
    const auto finish = [&](auto s, auto c, Ints dots) __attribute__((always_inline)) {
      constexpr int kC = decltype(c)::value;
      const Floats values = kTakesOffset<kKind> ? values_of(dots, sums.offset(c, part)) : convert_to<Floats>(dots);
      Floats minimum{};
      if constexpr (kKind.has_min) minimum = scales[s].minimum(sub);
      add_dots<kKind.has_min>(acc[s][c], values, scales[s].scale(sub), minimum, panels.of[kC / kPanel].d[kC % kPanel],
                              sums.scaled(c, part));
    };
    dots_of_part<kKind, kStrips, kColumns, decltype(part)::value>(codes, panels.of, lines, by, finish);
  };
  const auto passed = [&]() __attribute__((always_inline)) { panels.next_group(); };
  for_parts(add, passed);
}

/// The dots of a strip with kColumns columns, with the scales and minima that they are multiplied by later.
template <int kColumns>
struct LaterDots {
  static constexpr int kParts = 8;

  std::int32_t dots[kColumns][kParts][kLanes];
  float scales[kParts][kLanes];
  float minima[kParts][kLanes];
};

/// Adds `parts` of the stored dots to the columns' sums. `behind` is the panel at the group of the first stored dot.
/// Kinds of tiles share this function.
template <int kPer, bool kHasMin, int kColumns>
[[gnu::noinline]] void add_later_dots(float (&sums)[kColumns][kLanes], const LaterDots<kColumns>& later, int parts,
                                      float offset, const PanelPass& behind, std::size_t width) {
  for (int c = 0; c < kColumns; ++c) {
    Floats acc = load(sums[c]);
    const float* d = behind.d + c;
    const float* xsum = behind.sums + c * kPer;
    for (int at = 0; at < parts; d += width, xsum += width * kPer) {
      for (int part = 0; part < kPer; ++part, ++at) {
        const Floats dots = values_of(load<Ints>(later.dots[c][at]), offset * xsum[part]);
        add_dots<kHasMin>(acc, dots, load(later.scales[at]), load(later.minima[kHasMin ? at : 0]), *d, *d * xsum[part]);
      }
    }
    store(sums[c], acc);
  }
}

/// Multiplies a strip with the columns from `column` on, for machines with few registers: stores dots of up to 8 parts,
/// then scales and adds all of them.
template <TileKind kKind, int kColumns>
void strip_times_pass(const MatmulArgs& a, const TileShape& shape, const std::byte* strip, std::uint32_t row,
                      std::uint32_t column) {
  const float offset = dot_offset<kKind>(shape);
  PanelsPass<kKind, kColumns> panels(a, column, 0);
  PanelPass behind = panels.of[0];
  LaterDots<kColumns> later;
  int at = 0;
  float sums[kColumns][kLanes] = {};
  const auto finish = [&]() __attribute__((always_inline)) {
    add_later_dots<kKind.per_group(), kKind.has_min>(sums, later, at, offset, behind, panels.width);
    behind = panels.of[0];
    at = 0;
  };
  const auto multiply = [&](auto part, auto& codes, const auto& scales, std::size_t sub,
                            const std::byte*) __attribute__((always_inline)) {
    store(later.scales[at], scales[0].scale(sub));
    if constexpr (kKind.has_min) store(later.minima[at], scales[0].minimum(sub));
    dots_of_part<kKind, 1, kColumns, decltype(part)::value>(
        codes, panels.of, nullptr, kBothLevels,
        [&](auto, auto c, const Ints& dots) __attribute__((always_inline)) { store(later.dots[c][at], dots); });
    ++at;
  };
  const auto passed = [&]() __attribute__((always_inline)) {
    panels.next_group();
    if (at == later.kParts) finish();
  };
  for_each_part<kKind, 1>(groups_of(a.cols), shape, strip, 0, multiply, passed);
  finish();
  for (int c = 0; c < kColumns; ++c) store_strip(a, row, column + c, load(sums[c]));
}

/// Multiplies kStrips strips of 16 rows with kColumns activation columns from `column` on. Neighbouring strips are
/// strip_bytes and rows_apart apart; 0 means the same strip twice.
template <TileKind kKind, int kColumns, int kStrips>
void strips_times_columns(const MatmulArgs& a, const TileShape& shape, const std::byte* strip, std::size_t strip_bytes,
                          std::uint32_t row, std::uint32_t rows_apart, std::uint32_t column) {
  Floats acc[kStrips][kColumns];
  for_each_sum<kStrips, kColumns>([&](auto s, auto c) __attribute__((always_inline)) { acc[s][c] = broadcast(0.0f); });
  add_products<kKind>(acc, a, shape, column, 0, [&](auto& add, auto& passed) __attribute__((always_inline)) {
    for_each_part<kKind, kStrips>(groups_of(a.cols), shape, strip, strip_bytes, add, passed);
  });
  for_each_sum<kStrips, kColumns>([&](auto s, auto c) __attribute__((always_inline)) {
    store_strip(a, row + s * rows_apart, column + c, acc[s][c]);
  });
}

/// Multiplies `n_groups` of a span, from `group` on, with a pass of kMaxPass columns from first + column on. Adds to
/// span.sums from `column` on.
template <TileKind kKind>
void span_times_columns(UnpackedSpan<kKind>& span, const MatmulArgs& a, const TileShape& shape, std::uint32_t first,
                        std::uint32_t column, std::size_t group, std::size_t n_groups) {
  Floats acc[1][kMaxPass];
  unroll<kMaxPass>([&](auto c) __attribute__((always_inline)) { acc[0][c] = load(span.sums[column + c]); });
  const auto for_parts = [&](auto& add, auto& passed) __attribute__((always_inline)) {
    Several<SpanCodes<kKind>, 1> codes{{SpanCodes<kKind>(span)}};
    const SpanScales<kKind> scales[1] = {{span}};
    for (std::size_t at = 0; at < n_groups * kKind.per_group();) {
      unroll<kKind.per_group()>([&](auto part) __attribute__((always_inline)) {
        add(part, codes, scales, at, nullptr);
        ++at;
      });
      passed();
    }
  };
  add_products<kKind>(acc, a, shape, first + column, group, for_parts);
  unroll<kMaxPass>([&](auto c) __attribute__((always_inline)) { store(span.sums[column + c], acc[0][c]); });
}

/// Multiplies a strip with the first `columns` columns, which must be a multiple of kMaxPass.
template <TileKind kKind>
void strip_in_spans(const MatmulArgs& a, const TileShape& shape, const std::byte* strip, std::uint32_t row,
                    std::uint32_t columns) {
  static_assert(kSpanColumns % kMaxPass == 0);
  const std::size_t n_groups = whole_groups(a.cols, shape);
  UnpackedSpan<kKind> span;
  for (std::uint32_t first = 0; first < columns; first += kSpanColumns) {
    const std::uint32_t here = std::min(columns - first, kSpanColumns);
    __builtin_memset(span.sums, 0, here * sizeof span.sums[0]);
    for (std::size_t group = 0; group < n_groups; group += kSpan) {
      const std::size_t groups = std::min(n_groups - group, std::size_t{kSpan});
      unpack_span<kKind, false>(span, shape, strip + group / shape.groups * shape.bytes, groups);
      for (std::uint32_t column = 0; column < here; column += kMaxPass) {
        span_times_columns(span, a, shape, first, column, group, groups);
      }
    }
    for (std::uint32_t c = 0; c < here; ++c) store_strip(a, row, first + c, load(span.sums[c]));
  }
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

/// Multiplies kRows rows of a float format from `row` on with kColumns columns from `column` on.
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

/// Multiplies the 16 rows of a float format from `row` on, fewer at the end of the matrix, with kColumns columns.
template <int kFormat, int kColumns>
void strip_of_floats(const MatmulArgs& a, std::uint32_t row, std::uint32_t column) {
  constexpr int kRows = kColumns >= 4 ? 1 : 4 / kColumns;
  const std::uint32_t end = a.rows - row < kTileRows ? a.rows : row + kTileRows;
  for (; end - row >= kRows; row += kRows) rows_times_columns<kFormat, kRows, kColumns>(a, row, column);
  for (; row < end; ++row) rows_times_columns<kFormat, 1, kColumns>(a, row, column);
}

/// Calls pass(kColumns, column) until all columns in [column, n) are multiplied. Each pass has as many columns as
/// registers hold, kMaxPass at most.
template <class Pass>
QSF_INLINE void for_columns(std::uint32_t column, std::uint32_t n, Pass pass) {
  unroll<4>([&](auto index) __attribute__((always_inline)) {
    constexpr int kColumns = 8 >> decltype(index)::value;
    if constexpr (kColumns <= kMaxPass && (kColumns != 2 || kPassesOfTwo)) {
      for (; n - column >= kColumns; column += kColumns) pass(std::integral_constant<int, kColumns>{}, column);
    }
  });
}

/// Returns the number of strips that hold `rows`. The formula cannot overflow, unlike rounding up by addition.
constexpr std::uint32_t strips_of(std::uint32_t rows) { return rows / kTileRows + (rows % kTileRows != 0 ? 1 : 0); }

/// Multiplies one column, on machines without prefetch: strip i together with strip i of the second half. Processors
/// follow two long runs of memory by themselves, but not many short ones.
template <TileKind kKind>
void halves_times_column(const MatmulArgs& a, const TileShape& shape, std::size_t strip_bytes, std::uint32_t column) {
  const std::uint32_t strips = strips_of(a.rows), half = strips / 2 + strips % 2;
  for (std::uint32_t strip = 0; strip < half; ++strip) {
    const std::uint32_t apart =
        strip + half < strips ? half : 0;  // without a strip in the second half, the strip is computed twice
    strips_times_columns<kKind, 1, 2>(a, shape, a.weights + strip * strip_bytes, apart * strip_bytes, strip * kTileRows,
                                      apart * kTileRows, column);
  }
}

/// Returns how many of n columns are multiplied one at a time: on machines without prefetch, those that passes of
/// several columns leave over.
constexpr std::uint32_t columns_alone(std::uint32_t n) {
  constexpr std::uint32_t kFewest = kPassesOfTwo ? 2 : 4;
  if (kReadsAhead) return 0;
  return kMaxPass < kFewest ? n : n % kFewest;
}

/// Multiplies all columns of a strip before the next strip, so that a strip is read from memory once.
template <TileKind kKind, TileKind kAlone, class Tiles = MatrixTiles<Ints>>
void matmul_tiles(const MatmulArgs& a, const TileShape& shape) {
  const std::size_t strip_bytes = whole_groups(a.cols, shape) / shape.groups * shape.bytes;
  const std::uint32_t strips = strips_of(a.rows);
  const std::uint32_t together = a.n - columns_alone(a.n);
  std::uint32_t in_tiles = 0, in_spans = 0, step = 1;
  [[maybe_unused]] std::optional<Tiles> tiles;
  if constexpr (Tiles::kColumns != 0) {
    in_tiles = a.n / Tiles::kColumns * Tiles::kColumns;
    if (in_tiles != 0) {
      tiles.emplace(kMaxDots / kKind.per_group());
      step = kTileStrips;
    }
  } else if constexpr (kKind.in_spans()) {
    if (a.n > kMaxPass) in_spans = a.n / kMaxPass * kMaxPass;
  }
  for (std::uint32_t strip = 0; strip < strips && together != 0; strip += step) {
    const std::byte* const at = a.weights + strip * strip_bytes;
    const std::uint32_t row = strip * kTileRows, here = std::min(strips - strip, step);
    // Without a second strip, the strip is computed twice.
    const std::size_t to_next = here == 1 ? 0 : strip_bytes;
    if constexpr (Tiles::kColumns != 0) {
      if (in_tiles != 0) strips_times_tiles<kKind>(*tiles, a, shape, at, to_next, row, in_tiles);
    }
    if constexpr (Tiles::kColumns == 0 && kKind.in_spans()) {
      for (std::uint32_t s = 0; s < here && in_spans != 0; ++s) {
        strip_in_spans<kKind>(a, shape, at + s * strip_bytes, row + s * kTileRows, in_spans);
      }
    }
    for_columns(in_tiles + in_spans, together, [&](auto columns, std::uint32_t column) {
      if constexpr (columns > 1 || kReadsAhead) {
        for (std::uint32_t s = 0; s < here; ++s) {
          if constexpr (kDotsInRow && columns == kMaxPass) {  // a smaller pass gains little or nothing
            strip_times_pass<kKind, columns>(a, shape, at + s * strip_bytes, row + s * kTileRows, column);
          } else {
            strips_times_columns<kKind, columns, 1>(a, shape, at + s * strip_bytes, 0, row + s * kTileRows, 0, column);
          }
        }
      }
    });
  }
  if constexpr (!kReadsAhead) {
    for (std::uint32_t column = together; column < a.n; ++column) {
      halves_times_column<kAlone>(a, shape, strip_bytes, column);
    }
  }
}

template <int kFormat>
void matmul(const MatmulArgs& a) {
  constexpr Format f = kFormats[kFormat];
  if constexpr (f.quantized()) {
    static constexpr TileShape kShape = tile_shape<kFormat>();
    matmul_tiles<tile_kind(f), alone_kind(f)>(a, kShape);
  } else {
    for (std::uint32_t strip = 0; strip < strips_of(a.rows); ++strip) {
      for_columns(0, a.n, [&](auto columns, std::uint32_t column) {
        strip_of_floats<kFormat, columns>(a, strip * kTileRows, column);
      });
    }
  }
}

}  // namespace
}  // namespace qsf
