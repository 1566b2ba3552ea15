// The points of the grids as the levels that products take: a point of 8 or 4 levels is a word, with the first level in
// the lowest byte.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace qsf::grids {

inline constexpr int kOffset = 64;  // of levels in words, so that the level and its negative are 1 to 127
inline constexpr std::uint64_t kEach = 0x0101010101010101u;

extern const std::array<std::uint64_t, 256> kIq2XxsWords;
extern const std::array<std::uint64_t, 512> kIq2XsWords;
extern const std::array<std::uint64_t, 1024> kIq2SWords;
extern const std::array<std::uint32_t, 256> kIq3XxsWords;
extern const std::array<std::uint32_t, 512> kIq3SWords;
extern const std::array<std::uint64_t, 2048> kIq1Words;  // 8 times the points, moved down

}  // namespace qsf::grids
