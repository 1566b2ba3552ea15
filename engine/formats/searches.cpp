// The list of searches, and the one for blocks of NVFP4.
#include "formats/searches.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/sub_scales.h"
#include "qsf/base/bytes.h"

namespace qsf {
namespace {

constexpr unsigned kScaled = 16, kNoScale = 0x7f;  // weights under a scale; the code for no number

std::array<float, 16> levels_of(const Format& f) {
  std::array<float, 16> out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<float>(level(f, static_cast<std::uint8_t>(i)) - f.offset);
  }
  return out;
}

struct Line {
  FormatId format;
  SearchBlock* search;
};
constexpr std::array kSearches{
    Line{ggml_type(16), to_iq2_xxs}, Line{ggml_type(17), to_iq2_xs}, Line{ggml_type(18), to_iq3_xxs},
    Line{ggml_type(19), to_iq1_s},   Line{ggml_type(21), to_iq3_s},  Line{ggml_type(22), to_iq2_s},
    Line{ggml_type(29), to_iq1_m},   Line{ggml_type(40), to_nvfp4},  Line{own_type(31), to_nvfp4_f32},
};

/// Takes the cheapest 8-bit float for each 16 weights, around the one that reaches the largest of them.
void to_8bit_scales(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  constexpr unsigned kBelow = 5, kAbove = 2;
  const std::array<float, 16> levels = levels_of(f);
  const float top = *std::ranges::max_element(levels);
  for (std::size_t begin = 0; begin < weights.size(); begin += kScaled) {
    const std::span<const float> x = weights.subspan(begin, kScaled);
    float most = 0;
    for (const float each : x) most = std::max(most, std::abs(each));
    unsigned middle = 0;
    while (middle + 1 < kNoScale && half_of_e4m3(middle) * top < most) ++middle;
    double least = std::numeric_limits<double>::infinity();
    std::array<std::uint8_t, kScaled> codes{}, best{};
    unsigned taken = 0;
    for (unsigned code = middle - std::min(middle, kBelow); code <= std::min(middle + kAbove, kNoScale - 1); ++code) {
      double sum = 0;
      for (unsigned i = 0; i < kScaled; ++i) {
        const auto away = [&, scale = half_of_e4m3(code)](float l) { return std::abs(x[i] - scale * l); };
        const auto* const nearest = std::ranges::min_element(levels, {}, away);
        codes[i] = static_cast<std::uint8_t>(nearest - levels.begin());
        sum +=
            (cost.cost.empty() ? 1.0 : double{cost.cost[begin + i]}) * double{away(*nearest)} * double{away(*nearest)};
      }
      if (!(sum < least)) continue;
      least = sum;
      best = codes;
      taken = code;
    }
    const std::size_t which = begin / kScaled;
    out[f.sub.at + which] = static_cast<std::byte>(taken);
    for (unsigned i = 0; i < kScaled / 2; ++i) {
      out[f.planes[0].at + kScaled / 2 * which + i] = static_cast<std::byte>(best[i] | best[i + kScaled / 2] << 4);
    }
  }
}

}  // namespace

SearchBlock* search_of(const Format& f) {
  const auto* const at = std::ranges::find(kSearches, f.id, &Line::format);
  return at == kSearches.end() ? nullptr : at->search;
}

void to_nvfp4(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  to_8bit_scales(*find_format(ggml_type(40)), weights, cost, out);
}

/// The scale makes the largest weight the largest number under it.
void to_nvfp4_f32(std::span<const float> weights, const BlockCost& cost, std::byte* out) {
  const Format& f = *find_format(own_type(31));
  float most = 0;
  for (const float each : weights) most = std::max(most, std::abs(each));
  const float scale = most / (std::ranges::max(levels_of(f)) * half_of_e4m3(kNoScale - 1));
  std::array<float, 64> scaled;
  std::ranges::transform(weights, scaled.begin(), [&](float each) { return scale > 0 ? each / scale : 0; });
  store_le(out + f.scale.at, scale);
  to_8bit_scales(f, scaled, cost, out);
}

}  // namespace qsf
