// Trellis codes: every group of 32 columns is a chain, or two, that ends where it begins, and the level of a column
// comes from its code and those of the columns that follow it in the chain, so that codes of 2 to 4 bits reach many
// levels (trellis coded quantization, Marcellin and Fischer 1990; of weights, QTIP, Tseng et al. 2024). A level is one
// of 16 entries, or the exclusive or of two, which four bits of the codes choose each: what every instruction set looks
// up in a step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tile.h"
#include "qsf/formats/format.h"

namespace qsf {

/// Tables of levels above -offset, and the codes of a chain.
struct TrellisTables {
  std::array<std::array<std::uint8_t, 16>, 2> entries;
  std::uint32_t chain;
  bool two;             // a second table
  std::uint32_t plane;  // whose bits choose the second's entry,
  std::uint32_t later;  // from so many codes later on
  int descents;         // over a row after its search: where states are many, a second takes long
};

inline constexpr std::uint32_t kTrellisBits = 7;   // of a level
inline constexpr int kTrellisOffset = 64;          // of levels
inline constexpr std::uint32_t kLeastTrellis = 2;  // bits of a code
inline constexpr float kTrellisSpread = 20;        // of weights over their scale, for which the tables were sought

/// By bits of a code. The first plane's four bits from a code on choose the first entry. Sought by changing entries one
/// after the other wherever that leaves less of the squares of normal numbers, by the least path.
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

/// Columns of a chain of a format.
constexpr std::uint32_t chain_columns(const Format& f) { return trellis_tables(f.code_bits).chain; }

/// The column of a place: the same byte of the dots that a chain goes through, then the next byte; after a chain's last
/// column comes its first.
constexpr std::uint32_t trellis_column(std::uint32_t code_bits, std::uint32_t place) {
  const std::uint32_t dots = trellis_tables(code_bits).chain / kTileGroup;
  return place % dots * kTileGroup + place / dots;
}

/// Codes of whole chains to levels, in place.
void trellis_levels(std::uint32_t code_bits, std::span<std::uint8_t> codes);

/// What a chain's errors e cost, by its places, as BlockCost has it: the sum of
/// cost[p] * (e[p] + sum over q > p of carry[p][q] * e[q])^2.
struct ChainCost {
  std::array<float, kGroup> cost;
  std::array<std::array<float, kGroup>, kGroup> carry;
  bool carries;
};
/// Of a chain whose columns count so much, and carry to those before them as the rows of `carry` say; or none.
ChainCost chain_cost(std::uint32_t code_bits, std::span<const float> cost, const float* carry, std::size_t stride);
/// Of a chain whose columns have these moments; those on and above the diagonal are read.
ChainCost chain_cost(std::uint32_t code_bits, const float* moments, std::size_t stride);

/// Of a chain's columns.
struct ChainPath {
  std::span<std::uint8_t> codes;
  std::span<float> levels;  // less the offset
};

/// Codes of a chain, whose levels are near to its weights over their scale: the path through the chain that
/// costs least, by Viterbi's algorithm, with each state's own errors where they carry.
void least_path(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost, const ChainPath& out);

/// Codes of a chain to a path that costs less, where one is found while all other columns stay: pull is what
/// BlockMoments' pull is, over the scale. Whether any changed.
bool improve_path(std::uint32_t code_bits, std::span<const float> pull, const ChainCost& cost, const ChainPath& path);

}  // namespace qsf
