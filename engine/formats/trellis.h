// Trellis codes. Every group of 32 columns is one chain, or two, that ends in the state in which it begins. The level
// of a column depends on its code and on the codes of the following columns in the chain, so that codes of 2 to 4 bits
// reach many levels (trellis coded quantization, Marcellin and Fischer 1990; for weights, QTIP, Tseng et al. 2024). A
// level is one of 16 entries, or the exclusive or of two. Four bits of the codes select each entry, because every
// instruction set looks up 16 entries in one step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tile.h"
#include "qsf/formats/format.h"

namespace qsf {

/// Tables of levels plus kTrellisOffset, and the length of a chain.
struct TrellisTables {
  std::array<std::array<std::uint8_t, 16>, 2> entries;
  std::uint32_t chain;
  bool two;             // a second table
  std::uint32_t plane;  // whose bits select the second entry,
  std::uint32_t later;  // from this many codes later on
  int descents;         // over a row after its search; a second one takes long if states are many
};

inline constexpr std::uint32_t kTrellisBits = 7;   // of a level
inline constexpr int kTrellisOffset = 64;          // of levels
inline constexpr std::uint32_t kLeastTrellis = 2;  // bits of a code
inline constexpr float kTrellisSpread = 20;        // of weights over their scale, for which the tables were optimized

/// Tables by bits of a code. The first plane's four bits from a code on select the first entry. The tables result from
/// changing entries one at a time as long as the squared error of normal numbers, coded by the cheapest path,
/// decreases.
inline constexpr std::array<TrellisTables, 3> kTrellisTables{{
    {{{{70, 87, 36, 57, 71, 20, 51, 93, 53, 66, 83, 38, 105, 46, 62, 75}}}, kGroup / 2, false, 0, 0, 2},
    {{{{63, 90, 104, 55, 102, 77, 54, 62, 41, 56, 93, 79, 79, 46, 60, 70},
       {109, 3, 113, 12, 11, 118, 24, 122, 116, 106, 3, 124, 112, 0, 9, 19}}},
     kGroup,
     true,
     1,
     0,
     1},
    {{{{43, 65, 85, 32, 57, 78, 81, 76, 88, 54, 69, 49, 73, 58, 98, 61},
       {127, 99, 17, 111, 39, 20, 115, 91, 12, 29, 4, 123, 119, 107, 8, 0}}},
     kGroup,
     true,
     0,
     1,
     1},
}};
constexpr const TrellisTables& trellis_tables(std::uint32_t code_bits) {
  return kTrellisTables[code_bits - kLeastTrellis];
}

/// Returns the columns of a chain of a format.
constexpr std::uint32_t chain_columns(const Format& f) { return trellis_tables(f.code_bits).chain; }

/// Returns the column of a place. A chain goes through the same byte of all its dots, then through the next byte. Its
/// first column follows its last.
constexpr std::uint32_t trellis_column(std::uint32_t code_bits, std::uint32_t place) {
  const std::uint32_t dots = trellis_tables(code_bits).chain / kTileGroup;
  return place % dots * kTileGroup + place / dots;
}

/// Replaces the codes of whole chains with levels.
void trellis_levels(std::uint32_t code_bits, std::span<std::uint8_t> codes);

/// The cost of a chain's errors e, by place, as in BlockCost: the sum of cost[p] * (e[p] + sum over q > p of
/// carry[p][q] * e[q])^2.
struct ChainCost {
  std::array<float, kGroup> cost;
  std::array<std::array<float, kGroup>, kGroup> carry;
  bool carries;
};
/// Returns the cost for a chain whose columns have these weights. `carry` has the rows that carry errors to earlier
/// columns, or is null.
ChainCost chain_cost(std::uint32_t code_bits, std::span<const float> cost, const float* carry, std::size_t stride);
/// Returns the cost for a chain whose columns have these moments. Reads only the elements on and above the diagonal.
ChainCost chain_cost(std::uint32_t code_bits, const float* moments, std::size_t stride);

/// The path of a chain, by column.
struct ChainPath {
  std::span<std::uint8_t> codes;
  std::span<float> levels;  // without the offset
};

/// Finds the path through a chain that costs least for its weights divided by their scale, by Viterbi's algorithm. If
/// errors carry, each state keeps its own errors.
void least_path(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost, const ChainPath& out);

/// Replaces the codes of a chain with a cheaper path, if one is found while all other columns stay. `pull` is the pull
/// of BlockMoments divided by the scale. Returns whether any code changed.
bool improve_path(std::uint32_t code_bits, std::span<const float> pull, const ChainCost& cost, const ChainPath& path);

}  // namespace qsf
