#include "formats/grid_words.h"

#include "formats/grid_points.h"

namespace qsf::grids {
namespace {

/// Returns the words of points with `bits` for each level, which is multiplied by `times` and increased by `by`.
template <class Word, std::size_t kPoints, std::size_t kLevels>
constexpr std::array<Word, kPoints> words_of(const std::array<std::uint16_t, kPoints>& points,
                                             const std::array<float, kLevels>& levels, float times = 1, float by = 0) {
  constexpr unsigned kBits = kLevels > 4 ? 3 : 2;
  std::array<Word, kPoints> out{};
  for (std::size_t p = 0; p < kPoints; ++p) {
    for (unsigned i = 0; i < sizeof(Word); ++i) {
      const float level = times * levels[points[p] >> kBits * i & ((1u << kBits) - 1)] + by;
      out[p] |= static_cast<Word>(static_cast<int>(level) + kOffset) << 8 * i;
    }
  }
  return out;
}

constexpr float kEighths = 1 / kMoved;

}  // namespace

constexpr std::array<std::uint64_t, 256> kIq2XxsWords = words_of<std::uint64_t>(kIq2Xxs, kLevels2);
constexpr std::array<std::uint64_t, 512> kIq2XsWords = words_of<std::uint64_t>(kIq2Xs, kLevels2);
constexpr std::array<std::uint64_t, 1024> kIq2SWords = words_of<std::uint64_t>(kIq2S, kLevels2);
constexpr std::array<std::uint32_t, 256> kIq3XxsWords = words_of<std::uint32_t>(kIq3Xxs, kLevels3Xxs);
constexpr std::array<std::uint32_t, 512> kIq3SWords = words_of<std::uint32_t>(kIq3S, kLevels3S);
constexpr std::array<std::uint64_t, 2048> kIq1Words = words_of<std::uint64_t>(kIq1, kLevels1, kEighths, -1);

}  // namespace qsf::grids
