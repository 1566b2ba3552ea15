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

/// Eight columns of a row, or of each row of a vector: the numbers of their points and a bit for each column.
template <class V>
struct GridEight {
  V point;
  V other;  // IQ3: of the last four columns
  V bits;   // the lowest byte
};

// The functions below take byte(k), which returns byte k of a block in a type with &, |, ^, -, << and >>.

template <class Byte>
inline auto grid_pair(std::size_t k, Byte byte) {
  return byte(k) | byte(k + 1) << 8;
}
template <class Byte>
inline auto grid_nibble(std::size_t k, std::size_t i, Byte byte) {
  return byte(k + i / 2) >> 4 * (i % 2) & 15u;
}

/// Returns columns 8 g .. 8 g + 7.
template <Grid kGrid, class Byte>
inline auto grid_eight(std::size_t g, Byte byte) {
  using V = decltype(byte(0));
  const std::size_t at = g % 4;
  // For 32 weights, 28 signs and a sub-scale of 4 bits.
  const auto seven = [&](std::size_t word) {
    return grids::eight_signs(grid_pair(word + (at == 0 ? 0 : at - 1), byte) >> (at == 0 ? 0 : 8 - at));
  };
  if constexpr (kGrid == Grid::iq2_xxs) {
    return GridEight<V>{byte(2 + g / 4 * 8 + at), V{}, seven(6 + g / 4 * 8)};
  } else if constexpr (kGrid == Grid::iq2_xs) {
    const V code = grid_pair(2 + 2 * g, byte);
    return GridEight<V>{code & 511u, V{}, grids::eight_signs(code >> 9)};
  } else if constexpr (kGrid == Grid::iq2_s) {
    return GridEight<V>{byte(2 + g) | (byte(66 + g / 4) >> 2 * at & 3u) << 8, V{}, byte(34 + g)};
  } else if constexpr (kGrid == Grid::iq3_xxs) {
    return GridEight<V>{byte(2 + 2 * g), byte(3 + 2 * g), seven(66 + g / 4 * 4)};
  } else if constexpr (kGrid == Grid::iq3_s) {
    const V high = byte(66 + g / 4) >> 2 * at;
    return GridEight<V>{byte(2 + 2 * g) | (high & 1u) << 8, byte(3 + 2 * g) | (high & 2u) << 7, byte(74 + g)};
  } else if constexpr (kGrid == Grid::iq1_s) {
    const V more = grid_pair(34 + g / 4 * 2, byte);
    return GridEight<V>{byte(2 + g) | (more >> 3 * at & 7u) << 8, V{}, (more >> 15) - 1u};  // a set bit is down
  } else {
    const V more = grid_nibble(32, g, byte);
    return GridEight<V>{byte(g) | (more & 7u) << 8, V{}, (more >> 3) - 1u};
  }
}

/// The factor of a block's scale with which its sub-scales are odd numbers.
template <Grid kGrid>
inline constexpr float kGridUnit = is_iq1(kGrid)          ? grids::kMoved
                                   : kGrid == Grid::iq3_s ? 1.0f
                                   : is_iq3(kGrid)        ? 0.25f
                                                          : 0.125f;

/// Returns the scale of a block, as bits of a binary16.
template <Grid kGrid, class Byte>
inline auto grid_scale(Byte byte) {
  if constexpr (kGrid == Grid::iq1_m) {  // the top bits of four pairs of bytes
    auto bits = byte(49) >> 4;
    for (std::size_t i = 1; i < 4; ++i) bits = bits | byte(49 + 2 * i) >> 4 << 4 * i;
    return bits;
  } else {
    return grid_pair(0, byte);
  }
}

/// Returns the sub-scale of columns 16 j .. 16 j + 15, an odd number.
template <Grid kGrid, class Byte>
inline auto grid_sub(std::size_t j, Byte byte) {
  const auto number = [&] {
    if constexpr (kGrid == Grid::iq2_xxs) return byte(9 + j / 2 * 8) >> 4;
    if constexpr (kGrid == Grid::iq2_xs) return grid_nibble(66, j, byte);
    if constexpr (kGrid == Grid::iq2_s) return grid_nibble(74, j, byte);
    if constexpr (kGrid == Grid::iq3_xxs) return byte(69 + j / 2 * 4) >> 4;
    if constexpr (kGrid == Grid::iq3_s) return grid_nibble(106, j / 2, byte);
    if constexpr (kGrid == Grid::iq1_s) return byte(35 + j / 2 * 2) >> 4 & 7u;
    if constexpr (kGrid == Grid::iq1_m) return grid_pair(48 + j / 4 * 2, byte) >> 3 * (j % 4) & 7u;
  };
  return number() << 1 ^ 1u;
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

/// Returns the words of a point, or of two, without their bits.
template <Grid kGrid>
inline std::uint64_t points_of(std::uint32_t point, std::uint32_t other) {
  const auto& words = grid_words<kGrid>();
  if constexpr (is_iq3(kGrid))
    return words[point] | std::uint64_t{words[other]} << 32;
  else
    return words[point];
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
