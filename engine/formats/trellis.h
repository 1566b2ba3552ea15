// Trellis codes: every group of 32 columns is a chain that ends where it begins, and the level of a column comes from
// its code and those of the columns that follow it in the chain, so that codes of 2 to 4 bits reach many levels
// (trellis coded quantization, Marcellin and Fischer 1990; of weights, QTIP, Tseng et al. 2024). A level is the
// exclusive or of two entries of 16, which four bits of the codes choose each: what every instruction set looks up in a
// step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "formats/tile.h"
#include "qsf/formats/format.h"

namespace qsf {

/// Two tables of levels above -offset; what chooses the second's entry: bits of a plane, from so many codes later on.
struct TrellisTables {
  std::array<std::array<std::uint8_t, 16>, 2> entries;
  std::uint32_t plane;
  std::uint32_t later;
};

inline constexpr std::uint32_t kTrellisBits = 7;    // of a level
inline constexpr int kTrellisOffset = 64;           // of levels
inline constexpr std::uint32_t kTrellisWindow = 8;  // bits of codes that a level comes from
inline constexpr std::uint32_t kLeastTrellis = 2;   // bits of a code
inline constexpr float kTrellisSpread = 20;         // of weights over their scale, for which the tables were sought

/// By bits of a code. The first plane's four bits from a code on choose the first entry. Sought by changing entries one
/// after the other wherever that leaves less of the squares of normal numbers, by the least path.
inline constexpr std::array<TrellisTables, 3> kTrellisTables{{
    {{{{93, 47, 62, 74, 70, 53, 35, 83, 56, 86, 68, 24, 81, 34, 52, 65},
       {107, 106, 115, 3, 125, 12, 0, 21, 21, 125, 21, 106, 2, 30, 97, 125}}},
     0,
     2},
    {{{{63, 90, 104, 55, 102, 77, 54, 62, 41, 56, 93, 79, 79, 46, 60, 70},
       {109, 3, 113, 12, 11, 118, 24, 122, 116, 106, 3, 124, 112, 0, 9, 19}}},
     1,
     0},
    {{{{43, 65, 85, 32, 57, 78, 81, 76, 88, 54, 69, 49, 73, 58, 98, 61},
       {127, 99, 17, 111, 39, 20, 115, 91, 12, 29, 4, 123, 119, 107, 8, 0}}},
     0,
     1},
}};
constexpr const TrellisTables& trellis_tables(std::uint32_t code_bits) {
  return kTrellisTables[code_bits - kLeastTrellis];
}

/// Where a group's chain goes: the same byte of each dot, then the next byte; after the last column comes the first.
constexpr std::uint32_t trellis_column(std::uint32_t place) {
  constexpr std::uint32_t kDots = kGroup / kTileGroup;
  return place % kDots * kTileGroup + place / kDots % kTileGroup;
}

/// Codes of whole groups to levels, in place.
void trellis_levels(std::uint32_t code_bits, std::span<std::uint8_t> codes);

/// What a group's errors e cost, by places of its chain, as BlockCost has it: the sum of
/// cost[p] * (e[p] + sum over q > p of carry[p][q] * e[q])^2.
struct ChainCost {
  std::array<float, kGroup> cost;
  std::array<std::array<float, kGroup>, kGroup> carry;
  bool carries;
};
/// Of a group whose columns count so much, and carry to those before them as the rows of `carry` say; or none.
ChainCost chain_cost(std::span<const float> cost, const float* carry, std::size_t stride);

/// The state that a group's chain begins and ends with: chosen by what lies on both sides, each column for itself.
std::uint32_t chain_end(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost);

/// Codes of a group's columns, whose levels are near to its weights over their scale: the path through the chain that
/// costs least, by Viterbi's algorithm, with each state's own errors where they carry.
void least_path(std::uint32_t code_bits, std::uint32_t end, std::span<const float> weights, const ChainCost& cost,
                std::span<std::uint8_t> codes);
void least_path(std::uint32_t code_bits, std::span<const float> weights, const ChainCost& cost,
                std::span<std::uint8_t> codes);

}  // namespace qsf
