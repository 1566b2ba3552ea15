// The blocks of GGML's IQ types. A block of 256 weights has the numbers of points and a bit for each weight: its sign,
// or whether IQ1's point is moved up. Weights are the block's scale times a sub-scale of 16 or 32 weights times a
// level; all these products are exact. Everything is internal to the unit, as kernels require.
#include <cstddef>
#include <cstdint>

#include "formats/grid_points.h"
#include "formats/grid_words.h"
#include "qsf/base/half.h"
#include "qsf/formats/format.h"

namespace qsf {
namespace {

inline constexpr std::size_t kGridSubs = 16;  // sub-scales of a block, of 16 weights each

constexpr bool is_iq1(Grid grid) { return grid == Grid::iq1_s || grid == Grid::iq1_m; }
constexpr bool is_iq3(Grid grid) { return grid == Grid::iq3_xxs || grid == Grid::iq3_s; }

/// The blocks of kRows rows: byte k of row r is at k * kRows + r. One row is a row-major block, 16 rows are a tile.
template <std::size_t kRows>
struct GridBytes {
  const std::byte* at;

  std::uint32_t byte(std::size_t k, std::size_t r) const { return std::to_integer<std::uint32_t>(at[k * kRows + r]); }
  std::uint32_t pair(std::size_t k, std::size_t r) const { return byte(k, r) | byte(k + 1, r) << 8; }
  std::uint32_t nibble(std::size_t k, std::size_t i, std::size_t r) const {
    return byte(k + i / 2, r) >> 4 * (i % 2) & 15;
  }
};

/// Eight columns of kRows rows: the numbers of their points and a bit for each column.
template <std::size_t kRows>
struct GridEight {
  std::uint16_t points[kRows];
  std::uint16_t others[kRows];  // IQ3: of the last four columns
  std::uint8_t bits[kRows];
};

/// Reads columns 8 g .. 8 g + 7.
template <Grid kGrid, std::size_t kRows>
inline void read_eight(const GridBytes<kRows>& in, std::size_t g, GridEight<kRows>& out) {
  const std::size_t at = g % 4;
  for (std::size_t r = 0; r < kRows; ++r) {
    std::uint32_t point = 0, other = 0, bits = 0;
    // For 32 weights, 28 signs and a sub-scale of 4 bits.
    const auto seven = [&](std::size_t word) {
      return grids::eight_signs(in.pair(word + (at == 0 ? 0 : at - 1), r) >> (at == 0 ? 0 : 8 - at));
    };
    if constexpr (kGrid == Grid::iq2_xxs) {
      point = in.byte(2 + g / 4 * 8 + at, r);
      bits = seven(6 + g / 4 * 8);
    } else if constexpr (kGrid == Grid::iq2_xs) {
      const std::uint32_t code = in.pair(2 + 2 * g, r);
      point = code & 511;
      bits = grids::eight_signs(code >> 9);
    } else if constexpr (kGrid == Grid::iq2_s) {
      point = in.byte(2 + g, r) | (in.byte(66 + g / 4, r) >> 2 * at & 3) << 8;
      bits = in.byte(34 + g, r);
    } else if constexpr (kGrid == Grid::iq3_xxs) {
      point = in.byte(2 + 2 * g, r);
      other = in.byte(3 + 2 * g, r);
      bits = seven(66 + g / 4 * 4);
    } else if constexpr (kGrid == Grid::iq3_s) {
      const std::uint32_t high = in.byte(66 + g / 4, r) >> 2 * at;
      point = in.byte(2 + 2 * g, r) | (high & 1) << 8;
      other = in.byte(3 + 2 * g, r) | (high & 2) << 7;
      bits = in.byte(74 + g, r);
    } else if constexpr (kGrid == Grid::iq1_s) {
      const std::uint32_t more = in.pair(34 + g / 4 * 2, r);
      point = in.byte(2 + g, r) | (more >> 3 * at & 7) << 8;
      bits = (more >> 15) - 1;  // a set bit is down
    } else {
      const std::uint32_t more = in.nibble(32, g, r);
      point = in.byte(g, r) | (more & 7) << 8;
      bits = (more >> 3) - 1;
    }
    out.points[r] = static_cast<std::uint16_t>(point);
    out.others[r] = static_cast<std::uint16_t>(other);
    out.bits[r] = static_cast<std::uint8_t>(bits);
  }
}

/// The factor of a block's scale with which its sub-scales are odd numbers.
template <Grid kGrid>
inline constexpr float kGridUnit = is_iq1(kGrid)          ? grids::kMoved
                                   : kGrid == Grid::iq3_s ? 1.0f
                                   : is_iq3(kGrid)        ? 0.25f
                                                          : 0.125f;

/// Reads the scales of the blocks.
template <Grid kGrid, std::size_t kRows>
inline void read_grid_scales(const GridBytes<kRows>& in, f16 (&out)[kRows]) {
  for (std::size_t r = 0; r < kRows; ++r) {
    if constexpr (kGrid == Grid::iq1_m) {  // the top bits of four pairs of bytes
      std::uint32_t bits = 0;
      for (std::size_t i = 0; i < 4; ++i) bits |= in.byte(49 + 2 * i, r) >> 4 << 4 * i;
      out[r] = static_cast<f16>(bits);
    } else {
      out[r] = static_cast<f16>(in.pair(0, r));
    }
  }
}

/// Reads the sub-scale of columns 16 j .. 16 j + 15, an odd number.
template <Grid kGrid, std::size_t kRows>
inline void read_grid_subs(const GridBytes<kRows>& in, std::size_t j, float (&out)[kRows]) {
  for (std::size_t r = 0; r < kRows; ++r) {
    std::uint32_t sub = 0;
    if constexpr (kGrid == Grid::iq2_xxs) sub = in.byte(9 + j / 2 * 8, r) >> 4;
    if constexpr (kGrid == Grid::iq2_xs) sub = in.nibble(66, j, r);
    if constexpr (kGrid == Grid::iq2_s) sub = in.nibble(74, j, r);
    if constexpr (kGrid == Grid::iq3_xxs) sub = in.byte(69 + j / 2 * 4, r) >> 4;
    if constexpr (kGrid == Grid::iq3_s) sub = in.nibble(106, j / 2, r);
    if constexpr (kGrid == Grid::iq1_s) sub = in.byte(35 + j / 2 * 2, r) >> 4 & 7;
    if constexpr (kGrid == Grid::iq1_m) sub = in.pair(48 + j / 4 * 2, r) >> 3 * (j % 4) & 7;
    out[r] = static_cast<float>(static_cast<int>(2 * sub + 1));
  }
}

/// The words of a grid's points.
template <Grid kGrid>
inline const auto& grid_words() {
  if constexpr (kGrid == Grid::iq2_xxs)
    return grids::kIq2XxsWords;
  else if constexpr (kGrid == Grid::iq2_xs)
    return grids::kIq2XsWords;
  else if constexpr (kGrid == Grid::iq2_s)
    return grids::kIq2SWords;
  else if constexpr (kGrid == Grid::iq3_xxs)
    return grids::kIq3XxsWords;
  else if constexpr (kGrid == Grid::iq3_s)
    return grids::kIq3SWords;
  else
    return grids::kIq1Words;
}

/// Returns the point or points of row r, without its bits.
template <Grid kGrid, std::size_t kRows>
inline std::uint64_t points_of(const GridEight<kRows>& eight, std::size_t r) {
  const auto& words = grid_words<kGrid>();
  if constexpr (is_iq3(kGrid))
    return words[eight.points[r]] | std::uint64_t{words[eight.others[r]]} << 32;
  else
    return words[eight.points[r]];
}
/// Returns the bytes 0 or 255 of a word, by the bits that select 255.
inline std::uint64_t mask_of(std::uint64_t bits) {
  std::uint64_t one = (bits * grids::kEach & 0x8040201008040201u);  // the bit of each byte, which may be any
  one |= one >> 4 & 0x0f0f0f0f0f0f0f0fu;
  one |= one >> 2 & 0x3f3f3f3f3f3f3f3fu;
  one |= one >> 1 & 0x7f7f7f7f7f7f7f7fu;
  return (one & grids::kEach) * 255;
}
/// Returns the levels of points with their bits as bytes 0 or 255: negatives, or levels moved up by two.
template <Grid kGrid, class Words>
inline Words with_bits(Words points, Words bits) {
  if constexpr (is_iq1(kGrid))
    return points + (bits & 2 * grids::kEach);
  else
    return (points ^ (bits & 127 * grids::kEach)) + (bits & grids::kEach);
}

}  // namespace
}  // namespace qsf
