// Tiles of grids: the levels and scales of 16 rows, which one kernel multiplies for all grids.
#include <algorithm>
#include <array>
#include <utility>

#include "formats/grids.inl"

namespace qsf {
namespace {

/// Columns of a tile that a GridEight has in one row.
struct GridRows {
  std::uint16_t points[kTileRows];
  std::uint16_t others[kTileRows];
  std::uint8_t bits[kTileRows];
};
/// Reads columns 8 g .. 8 g + 7 of a tile.
template <Grid kGrid>
QSF_INLINE void read_eight(const std::byte* tile, std::size_t g, GridRows& out) {
  for (std::size_t r = 0; r < kTileRows; ++r) {
    const auto eight =
        grid_eight<kGrid>(g, [&](std::size_t k) { return std::to_integer<std::uint32_t>(tile[k * kTileRows + r]); });
    out.points[r] = static_cast<std::uint16_t>(eight.point);
    out.others[r] = static_cast<std::uint16_t>(eight.other);
    out.bits[r] = static_cast<std::uint8_t>(eight.bits);
  }
}

/// The words of eight levels, or of their masks, in a part: of kWordRows rows.
inline constexpr std::size_t kWordRows = kParts == kLanes ? 1 : 8 * sizeof(BitsPart) / 64;
using WordsPart = PartOf<std::uint64_t, kWordRows>::type;

/// Returns bytes 0 or 255, selected by the bits of the rows from kFirst on.
template <std::size_t kFirst, std::size_t... kByte>
QSF_INLINE WordsPart masks_of_rows(const std::uint8_t (&bits)[kTileRows], std::index_sequence<kByte...>) {
  typedef std::uint8_t Bytes __attribute__((vector_size(kTileRows)));
  typedef std::uint8_t Spread __attribute__((vector_size(sizeof...(kByte))));
  const auto all = load_part<Bytes>(reinterpret_cast<const std::byte*>(bits));
  const Spread of_row = __builtin_shufflevector(all, all, (kFirst + kByte / 8)...);
  const Spread each = {static_cast<std::uint8_t>(1u << kByte % 8)...};
  return (WordsPart)((of_row & each) == each);
}

/// Returns the points of the rows from kFirst on, one in each lane.
template <class Part, std::size_t kFirst, class Word, std::size_t kPoints, std::size_t... kRow>
QSF_INLINE WordsPart points_of_rows(const std::array<Word, kPoints>& words, const std::uint16_t (&points)[kTileRows],
                                    std::index_sequence<kRow...>) {
  const Word* const at = words.data();
  const Part out = {at[points[kFirst + kRow]]...};
  return bit_cast<WordsPart>(out);
}

/// Returns every second lane of two parts, from kOdd on.
template <int kOdd, std::size_t... kLane>
QSF_INLINE WordsPart lanes_of(WordsPart a, WordsPart b, std::index_sequence<kLane...>) {
  const BitsPart lanes =
      __builtin_shufflevector(bit_cast<BitsPart>(a), bit_cast<BitsPart>(b), static_cast<int>(2 * kLane + kOdd)...);
  return bit_cast<WordsPart>(lanes);
}

/// Writes the levels of rows 2 kWordRows kPart and later, as many as a part has, of eight columns.
template <Grid kGrid, std::size_t kPart>
QSF_INLINE void put_rows(const GridRows& eight, std::byte* levels) {
  constexpr std::size_t kFirst = kPart * 2 * kWordRows;
  constexpr std::make_index_sequence<kWordRows> kRows;
  constexpr std::make_index_sequence<2 * kWordRows> kLanesOf;
  constexpr std::make_index_sequence<sizeof(WordsPart)> kBytes;
  const auto& words = grid_words<kGrid>();
  WordsPart a = masks_of_rows<kFirst>(eight.bits, kBytes), b = masks_of_rows<kFirst + kWordRows>(eight.bits, kBytes);
  WordsPart low, high;
  if constexpr (is_iq3(kGrid)) {
    low =
        with_bits<kGrid>(points_of_rows<BitsPart, kFirst>(words, eight.points, kLanesOf), lanes_of<0>(a, b, kLanesOf));
    high =
        with_bits<kGrid>(points_of_rows<BitsPart, kFirst>(words, eight.others, kLanesOf), lanes_of<1>(a, b, kLanesOf));
  } else {
    a = with_bits<kGrid>(points_of_rows<WordsPart, kFirst>(words, eight.points, kRows), a);
    b = with_bits<kGrid>(points_of_rows<WordsPart, kFirst + kWordRows>(words, eight.points, kRows), b);
    low = lanes_of<0>(a, b, kLanesOf);
    high = lanes_of<1>(a, b, kLanesOf);
  }
  __builtin_memcpy(levels + kPart * sizeof low, &low, sizeof low);
  __builtin_memcpy(levels + kTileLoad + kPart * sizeof high, &high, sizeof high);
}

/// Writes the levels of eight columns, first those of columns 0 to 3 of all rows.
template <Grid kGrid>
QSF_INLINE void put_eight(const GridRows& eight, std::byte* levels) {
  if constexpr (kParts == kLanes) {
    for (std::size_t r = 0; r < kTileRows; ++r) {
      const std::uint64_t word =
          with_bits<kGrid>(points_of<kGrid>(eight.points[r], eight.others[r]), mask_of(eight.bits[r]));
      const auto low = static_cast<std::uint32_t>(word), high = static_cast<std::uint32_t>(word >> 32);
      __builtin_memcpy(levels + r * kTileGroup, &low, sizeof low);
      __builtin_memcpy(levels + kTileLoad + r * kTileGroup, &high, sizeof high);
    }
  } else {
    unroll<kParts>([&](auto part) __attribute__((always_inline)) { put_rows<kGrid, part>(eight, levels); });
  }
}

/// Returns a function that returns byte k of each row's block.
QSF_INLINE auto bytes_of(const std::byte* tile) {
  return [tile](std::size_t k) __attribute__((always_inline)) { return load_promote_u8(tile + k * kTileRows); };
}

/// Whether points are looked up by vectors of their numbers.
template <class V>
inline constexpr bool kLooksUp = requires(const std::uint32_t* table, V numbers) { lookup(table, numbers); };

/// The lowest byte of each lane four times, for table_lookup.
constexpr std::array<std::uint8_t, kTileLoad> kLowestBytes = [] {
  std::array<std::uint8_t, kTileLoad> codes{};
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = i % 16 / 4 * 4;
  return codes;
}();

/// Returns the levels of points, of which those that have a bit of `each` are negatives, or moved up by two.
template <Grid kGrid, class Part>
QSF_INLINE Part with_bits(Part points, Part bits, Part each) {
  if constexpr (requires { select_bytes(bits, each, points, points); }) {
    constexpr std::uint32_t kUp = 0x02020202, kOffsets = 0x02020202u * grids::kOffset;  // of a level and its negative
    return select_bytes(bits, each, is_iq1(kGrid) ? points + kUp : kOffsets - points, points);
  } else {
    const auto masks = (WordsPart)((BytesPart)(bits & each) == (BytesPart)each);
    return (Part)with_bits<kGrid>((WordsPart)points, masks);
  }
}

/// Writes the levels of eight columns, first those of columns 0 to 3 of all rows.
template <Grid kGrid>
QSF_INLINE void put_eight(const GridEight<Bits>& eight, std::byte* levels) {
  const auto* const words = grid_words<kGrid>().data();
  Bits four[2];
  if constexpr (is_iq3(kGrid)) {
    four[0] = lookup(words, eight.point);
    four[1] = lookup(words, eight.other);
  } else {
    lookup(words, eight.point, four[0], four[1]);
  }
  const Bits bits = table_lookup(eight.bits, load<Bits>(kLowestBytes.data()));
  unroll<2>([&](auto half) __attribute__((always_inline)) {
    constexpr std::uint32_t kColumns = half == 0 ? 0x08040201 : 0x80402010;
    const auto part = [&](std::size_t i) __attribute__((always_inline)) {
      return with_bits<kGrid>(four[half].part[i], bits.part[i], BitsPart{} + kColumns);
    };
    store(levels + half * kTileLoad, QSF_EACH(Bits, part(i)));
  });
}

template <Grid kGrid>
void unpack_grid_levels(const std::byte* tile, const TileShape& shape, std::size_t group, std::byte* levels) {
  const std::size_t end = std::min(group + kUnpacked, std::size_t{shape.groups});
  if constexpr (kLooksUp<Bits>) {
    const auto put = [&](auto i) __attribute__((always_inline)) {
      put_eight<kGrid>(grid_eight<kGrid>(4 * group + i, bytes_of(tile)), levels);
      levels += 2 * kTileLoad;
    };
    for (; group < end; ++group) {
      if constexpr (kParts == 4) {  // whose code would be four times as large, and no faster
        for (std::size_t i = 0; i < 4; ++i) put(i);
      } else {
        unroll<4>(put);
      }
    }
  } else {
    for (std::size_t g = 4 * group; g < 4 * end; ++g, levels += 2 * kTileLoad) {
      GridRows eight;
      read_eight<kGrid>(tile, g, eight);
      // Numbers of points are loaded from memory, which takes less time than extracting them from a vector.
      if constexpr (kParts != kLanes) asm("" : "+m"(eight.points), "+m"(eight.others));
      put_eight<kGrid>(eight, levels);
    }
  }
}

template <Grid kGrid>
void unpack_grid_scales(const std::byte* tile, const TileShape&, Floats* scales) {
  const auto byte = bytes_of(tile);
  f16 halves[kTileRows];
  store_demote_u16(halves, grid_scale<kGrid>(byte));
  const Floats scale = load_promote_f16(halves) * broadcast(kGridUnit<kGrid>);
  for (std::size_t j = 0; j < kGridSubs; ++j) {
    scales[j] = scale * convert_to<Floats>(bit_cast<Ints>(grid_sub<kGrid>(j, byte)));
  }
}

}  // namespace
}  // namespace qsf
