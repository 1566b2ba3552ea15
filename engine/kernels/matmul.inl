// Matrix products. Quantized weights come as tiles: a lane is a row, so that every row keeps its own accumulator.

namespace qsf {
namespace {

/// Group kGroupAt (of 4 columns, 0..7) of the 32 columns that begin at column 32 * part of a tile, all planes joined.
template <int kFormat, int kGroupAt>
QSF_INLINE Bits tile_codes(const std::byte* tile, std::size_t part) {
  Bits codes = all(0u);
  unroll<kMaxPlanes>([&](auto index) __attribute__((always_inline)) {
    constexpr TilePlane plane = tile_planes(kFormats[kFormat])[decltype(index)::value];
    if constexpr (plane.width != 0) {
      constexpr TileField field = tile_field(plane, 0, kGroupAt * kTileGroup);
      constexpr std::uint32_t part_bytes = kTileRows * kGroup * plane.width / 8;
      Bits bytes = load<Bits>(tile + plane.offset + part * part_bytes + field.byte);
      if constexpr (field.shift != 0) bytes = right<field.shift>(bytes);
      if constexpr (plane.width != 8) bytes = bytes & all(0x01010101u * ((1u << plane.width) - 1));
      if constexpr (plane.shift != 0) bytes = left<plane.shift>(bytes);
      codes = codes | bytes;
    }
  });
  return codes;
}

QSF_INLINE Bits spread(const std::int8_t* x) {
  std::uint32_t four;
  __builtin_memcpy(&four, x, sizeof four);
  return all(four);
}

/// One strip of 16 rows times kColumns activation columns from `column` on.
template <int kFormat, int kColumns>
QSF_INLINE void strip_times_columns(const MatmulArgs& a, const std::byte* strip, std::uint32_t row,
                                    std::uint32_t column) {
  constexpr Format f = kFormats[kFormat];
  constexpr std::size_t kTileBytes = tile_bytes(f);
  constexpr int kBits = f.code_bits;
  constexpr std::int32_t kOffset = f.offset - taken<kBits>;
  constexpr std::size_t kParts32 = f.block / kGroup;
  const std::size_t n_blocks = (static_cast<std::size_t>(a.cols) + f.block - 1) / f.block;
  const std::size_t stride = a.xq.padded;
  const std::size_t groups = stride / kGroup;
  const std::int8_t* const x = a.xq.codes + column * stride;
  const float* const d = a.xq.d + column * groups;
  const std::int32_t* const sums = a.xq.sums + column * groups;

  Floats acc[kColumns];
  unroll<kColumns>([&](auto c) __attribute__((always_inline)) { acc[decltype(c)::value] = all(0.0f); });
  for (std::size_t b = 0; b < n_blocks; ++b) {
    const std::byte* const tile = strip + b * kTileBytes;
    const Floats scale = load_f16(tile);
    Floats minimum{};
    if constexpr (f.has_min) minimum = load_f16(tile + kTileScale);
    for (std::size_t part = 0; part < kParts32; ++part) {
      const std::size_t group = b * kParts32 + part;
      Sum<kBits> sum[kColumns] = {};
      unroll<kMaxDots>([&](auto index) __attribute__((always_inline)) {
        constexpr int kAt = decltype(index)::value;
        const auto codes = operand<kBits>(tile_codes<kFormat, kAt>(tile, part));
        unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
          constexpr int kC = decltype(c)::value;
          dot<kBits>(sum[kC], codes, spread(x + kC * stride + group * kGroup + kAt * kTileGroup));
        });
      });
      unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
        constexpr int kC = decltype(c)::value;
        const std::size_t at = kC * groups + group;
        Ints isum = total<kBits>(sum[kC]);
        if constexpr (kOffset != 0) isum = isum - all(kOffset * sums[at]);
        const Floats dx = all(d[at]);
        acc[kC] = acc[kC] + (scale * dx) * to_float(isum);
        if constexpr (f.has_min) acc[kC] = acc[kC] + (minimum * dx) * all(static_cast<float>(sums[at]));
      });
    }
  }
  unroll<kColumns>([&](auto c) __attribute__((always_inline)) {
    constexpr int kC = decltype(c)::value;
    store_upto(a.y + (column + kC) * static_cast<std::size_t>(a.y_stride) + row, acc[kC], a.rows - row);
  });
}

template <int kFormat>
QSF_INLINE Floats load_weights(const std::byte* at) {
  constexpr FormatId id = kFormats[kFormat].id;
  if constexpr (id == FormatId::f16) return load_f16(at);
  if constexpr (id == FormatId::bf16) return load_bf16(at);
  return load(at);
}

template <int kFormat>
QSF_INLINE Floats load_weights_upto(const std::byte* at, std::size_t n) {
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
  unroll<kRows * kColumns>([&](auto i) __attribute__((always_inline)) { acc[decltype(i)::value] = all(0.0f); });
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
    add([&](const std::byte* of)
            __attribute__((always_inline)) { return load_weights_upto<kFormat>(of + k * kBytes, n); },
        [&](const float* of) __attribute__((always_inline)) { return load_upto(of + k, n); });
  }
  unroll<kRows * kColumns>([&](auto i) __attribute__((always_inline)) {
    constexpr int kR = decltype(i)::value / kColumns;
    constexpr int kC = decltype(i)::value % kColumns;
    a.y[(column + kC) * static_cast<std::size_t>(a.y_stride) + row + kR] = sum_of(acc[decltype(i)::value]);
  });
}

template <int kFormat, int kColumns>
void pass(const MatmulArgs& a, const std::byte* strip, std::uint32_t row, std::uint32_t column) {
  if constexpr (kFormats[kFormat].quantized()) {
    strip_times_columns<kFormat, kColumns>(a, strip, row, column);
  } else {
    constexpr int kRows = kColumns >= 4 ? 1 : 4 / kColumns;
    const std::uint32_t end = a.rows - row < kTileRows ? a.rows : row + kTileRows;
    for (; end - row >= kRows; row += kRows) rows_times_columns<kFormat, kRows, kColumns>(a, row, column);
    for (; row < end; ++row) rows_times_columns<kFormat, 1, kColumns>(a, row, column);
  }
}

/// All columns of one strip before the next strip: a strip is read from memory once.
template <int kFormat>
void matmul(const MatmulArgs& a) {
  constexpr Format f = kFormats[kFormat];
  constexpr std::size_t kTileBytes = f.quantized() ? tile_bytes(f) : 0;
  const std::size_t strip_size = (static_cast<std::size_t>(a.cols) + f.block - 1) / f.block * kTileBytes;
  const std::byte* strip = a.weights;
  for (std::uint32_t row = 0; row < a.rows; strip += strip_size) {
    std::uint32_t column = 0;
    if constexpr (kMaxPass >= 8) {
      for (; a.n - column >= 8; column += 8) pass<kFormat, 8>(a, strip, row, column);
    }
    if constexpr (kMaxPass >= 4) {
      for (; a.n - column >= 4; column += 4) pass<kFormat, 4>(a, strip, row, column);
    }
    if constexpr (kMaxPass >= 2) {
      for (; a.n - column >= 2; column += 2) pass<kFormat, 2>(a, strip, row, column);
    }
    for (; column < a.n; ++column) pass<kFormat, 1>(a, strip, row, column);
    if (a.rows - row <= kTileRows) return;
    row += kTileRows;
  }
}

}  // namespace
}  // namespace qsf
