// Rounding of blocks of weights to scales and codes, one function for each rule.
#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/blocks.h"
#include "formats/levels.h"
#include "formats/sub_scales.h"
#include "formats/trellis.h"
#include "qsf/base/bytes.h"

namespace qsf {
namespace {

using Weights = std::span<const float>;
using Codes = std::array<std::uint8_t, kMaxBlock>;

// Returns the integer in [low, top] nearest to v, half to even; a NaN returns low. Adding and subtracting 1.5 * 2^23
// rounds.
int nearest(float v, int low, int top) {
  if (!(v > static_cast<float>(low))) return low;
  if (v >= static_cast<float>(top)) return top;
  return static_cast<int>((v + 0x1.8p23f) - 0x1.8p23f);
}

float ratio(float a, float b) { return b == 0.0f ? 0.0f : a / b; }

int top_code(const Format& f) { return (1 << f.code_bits) - 1; }

// Returns the weight of largest magnitude, the first of equals.
float peak_of(Weights weights) {
  float peak = 0.0f;
  for (const float w : weights) {
    if (std::fabs(w) > std::fabs(peak)) peak = w;
  }
  return peak;
}

float mean_magnitude(Weights weights) {
  float sum = 0.0f;
  for (const float w : weights) sum += std::fabs(w);
  return sum / static_cast<float>(weights.size());
}

// Returns the scale that the reader multiplies with. A float scale leaves room for every code.
float stored_scale(const Format& f, float scale) {
  if (f.scale.type == Scale::exponent) return scale;
  return f.scale.type == Scale::f16 ? f16_to_f32(saturated_f16(scale)) : std::clamp(scale, -0x1p120f, 0x1p120f);
}

/// A block's scale, minimum and codes before they are packed.
struct Block {
  float scale = 0.0f;
  float minimum = 0.0f;
  Codes codes{};
};

void round_range(const Format& f, Weights weights, float low, float high, Block& out) {
  const int top = top_code(f);
  out.minimum = f16_to_f32(saturated_f16(low));
  out.scale = stored_scale(f, (high - low) / static_cast<float>(top));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    out.codes[i] = static_cast<std::uint8_t>(nearest(ratio(weights[i] - out.minimum, out.scale), 0, top));
  }
}

void round_min_max(const Format& f, Weights weights, Block& out) {
  const auto [low, high] = std::ranges::minmax(weights);
  round_range(f, weights, low, high, out);
}

void round_mirrored(const Format& f, Weights weights, Block& out) {
  const float most = std::fabs(peak_of(weights));
  round_range(f, weights, -most, most, out);
}

void round_symmetric(const Format& f, Weights weights, Block& out) {
  out.scale = stored_scale(f, std::fabs(peak_of(weights)) / 127.0f);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    out.codes[i] = static_cast<std::uint8_t>(f.offset + nearest(ratio(weights[i], out.scale), -127, 127));
  }
}

void round_third_of_mean(const Format& f, Weights weights, Block& out) {
  out.scale = stored_scale(f, mean_magnitude(weights));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const bool zero = out.scale == 0.0f || std::fabs(weights[i]) < 0.3f * out.scale;
    out.codes[i] = zero ? 1 : weights[i] > 0.0f ? 2 : 0;
  }
}

void round_signs(const Format& f, Weights weights, Block& out) {
  out.scale = stored_scale(f, mean_magnitude(weights));
  for (std::size_t i = 0; i < weights.size(); ++i) out.codes[i] = weights[i] >= 0.0f ? 1 : 0;
}

// Follows quantize_row_q4_0_ref and q5_0_ref of ggml-quants.c, with the product and sum of a fused multiply-add.
void round_ggml_signed_max(const Format& f, Weights weights, Block& out) {
  const float scale = peak_of(weights) / -static_cast<float>(f.offset);
  const float inverse = ratio(1.0f, scale);
  out.scale = scale;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double v = static_cast<double>(weights[i]) * static_cast<double>(inverse) + f.offset + 0.5;
    out.codes[i] = !(v > 0.0) ? 0 : static_cast<std::uint8_t>(std::min(v, static_cast<double>(top_code(f))));
  }
}

// Follows quantize_row_q4_1_ref and q5_1_ref.
void round_ggml_min_max(const Format& f, Weights weights, Block& out) {
  const auto [low, high] = std::ranges::minmax(weights);
  out.minimum = low;
  out.scale = (high - low) / static_cast<float>(top_code(f));
  const float inverse = ratio(1.0f, out.scale);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double v = static_cast<double>(weights[i] - low) * static_cast<double>(inverse) + 0.5;
    out.codes[i] = !(v > 0.0) ? 0 : static_cast<std::uint8_t>(std::min(v, static_cast<double>(top_code(f))));
  }
}

// Follows quantize_row_q8_0_ref.
void round_ggml_symmetric(const Format& f, Weights weights, Block& out) {
  out.scale = std::fabs(peak_of(weights)) / 127.0f;
  const float inverse = ratio(1.0f, out.scale);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float v = weights[i] * inverse;
    const float magnitude = std::fabs(v) < 127.0f ? std::fabs(v) : v != v ? 0.0f : 127.0f;
    auto code = static_cast<int>(magnitude);
    if (magnitude - static_cast<float>(code) >= 0.5f) ++code;
    out.codes[i] = static_cast<std::uint8_t>(f.offset + (v < 0.0f ? -code : code));
  }
}

// Follows quantize_row_tq1_0_ref and tq2_0_ref: -1, 0 and 1, half away from zero.
void round_ggml_ternary(const Format& f, Weights weights, Block& out) {
  out.scale = std::fabs(peak_of(weights));
  const float inverse = ratio(1.0f, out.scale);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float v = weights[i] * inverse;
    out.codes[i] = static_cast<std::uint8_t>(f.offset + (v >= 0.5f ? 1 : v <= -0.5f ? -1 : 0));
  }
}

std::uint8_t nearest_code(const Format& f, float v) {
  std::uint8_t best = 0;
  float least = std::fabs(v - static_cast<float>(level(f, 0) - f.offset));
  for (int code = 1; code <= top_code(f); ++code) {
    const float away = std::fabs(v - static_cast<float>(level(f, static_cast<std::uint8_t>(code)) - f.offset));
    if (away >= least) continue;
    least = away;
    best = static_cast<std::uint8_t>(code);
  }
  return best;
}

// All codes are compared within kNear of the middle between two levels, or beyond kFar.
constexpr float kNear = 0x1p-10f, kFar = 0x1p12f;

/// Computes nearest_code of each, in loops without branches.
void nearest_codes(const Format& f, std::span<const float> v, std::span<std::uint8_t> codes) {
  const LevelTable& table = level_table(f);
  std::array<std::uint8_t, kMaxBlock> unsure;
  const std::size_t n = v.size();
  if (f.levels == Levels::codes) {
    const auto low = static_cast<float>(-f.offset), high = static_cast<float>(top_code(f) - f.offset);
    for (std::size_t i = 0; i < n; ++i) {
      float x = v[i] > low ? v[i] : low;
      x = x < high ? x : high;
      const float nearest = (x + 0x1.8p23f) - 0x1.8p23f;
      codes[i] = static_cast<std::uint8_t>(static_cast<int>(nearest) + f.offset);
      unsure[i] = !(std::fabs(x - nearest) < 0.5f - kNear) || !(std::fabs(v[i]) < kFar);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t at = 0, unclear = !(std::fabs(v[i]) < kFar);
      for (std::uint32_t k = 0; k + 1 < table.n; ++k) {
        at += v[i] > table.above[k];
        unclear |= std::fabs(v[i] - table.above[k]) < kNear;
      }
      codes[i] = table.code[at];
      unsure[i] = static_cast<std::uint8_t>(unclear);
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (unsure[i] != 0) codes[i] = nearest_code(f, v[i]);
  }
}

/// Sets the codes for a scale and returns the squared error.
double round_to_levels(const Format& f, Weights weights, float scale, std::span<std::uint8_t> codes) {
  std::array<float, kMaxBlock> v;
  for (std::size_t i = 0; i < weights.size(); ++i) v[i] = ratio(weights[i], scale);
  nearest_codes(f, std::span(v).first(weights.size()), codes);
  double error = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double away = static_cast<double>(weights[i]) - static_cast<double>(scale) * (level(f, codes[i]) - f.offset);
    error += away * away;
  }
  return error;
}

/// Returns the scale that fits given codes best: sum w l / sum l^2.
float fitted_scale(const Format& f, Weights weights, std::span<const std::uint8_t> codes) {
  double products = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const int l = level(f, codes[i]) - f.offset;
    products += static_cast<double>(weights[i]) * l;
    squares += static_cast<double>(l) * l;
  }
  return squares == 0.0 ? 0.0f : static_cast<float>(products / squares);
}

// Fits scale and codes to each other in turn, from several initial scales: the peak at the end of the levels, and up to
// a fifth inside or outside. The result with the least error is kept.
constexpr int kFits = 4;
constexpr std::array kBeginnings{1.0f, 0.8f, 0.85f, 0.9f, 0.95f, 1.05f, 1.1f, 1.2f};

float best_scale(const Format& f, Weights weights) {
  const int lowest = level(f, 0) - f.offset;
  const float begin = peak_of(weights) / static_cast<float>(lowest);
  Codes codes;
  float best = begin;
  double least = -1.0;
  for (const float factor : kBeginnings) {
    float scale = begin * factor;
    for (int fit = 0; fit < kFits; ++fit) {
      const double error = round_to_levels(f, weights, scale, codes);
      if (least < 0.0 || error < least) {
        least = error;
        best = scale;
      }
      const float next = fitted_scale(f, weights, codes);
      if (next == scale) break;
      scale = next;
    }
  }
  return best;
}

void round_nearest_level(const Format& f, Weights weights, Block& out) {
  out.scale = stored_scale(f, best_scale(f, weights));
  round_to_levels(f, weights, out.scale, out.codes);
}

// Follows quantize_row_mxfp4_ref. The largest floats keep a scale whose top level is finite.
void round_power_of_two(const Format& f, Weights weights, Block& out) {
  constexpr std::uint32_t kLeast = 2, kMost = 252;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(peak_of(weights)) >> 23 & 255;
  out.scale = power_of_two(std::clamp(exponent, kLeast + 2, kMost + 2) - 2);
  round_to_levels(f, weights, out.scale, out.codes);
}

void round_fixed(const Format& f, Weights weights, Block& out) { round_to_levels(f, weights, 1.0f, out.codes); }

void round_least_path(const Format& f, Weights weights, Block& out) {
  double squares = 0;
  for (const float w : weights) squares += double{w} * double{w};
  const double spread = std::sqrt(squares / static_cast<double>(weights.size()));
  out.scale = stored_scale(f, static_cast<float>(spread) / kTrellisSpread);
  constexpr std::array<float, kGroup> kOnes = [] {
    std::array<float, kGroup> ones{};
    ones.fill(1.0f);
    return ones;
  }();
  const std::uint32_t n = chain_columns(f);
  const ChainCost cost = chain_cost(f.code_bits, std::span(kOnes).first(n), nullptr, 0);
  std::array<float, kGroup> v, levels;
  for (std::uint32_t i = 0; i < f.block; i += n) {
    for (std::uint32_t k = 0; k < n; ++k) v[k] = ratio(weights[i + k], out.scale);
    least_path(f.code_bits, std::span(v).first(n), cost,
               {std::span(out.codes).subspan(i, n), std::span(levels).first(n)});
  }
}

// Rounds the sub-scales of a block. The sub-scale of largest magnitude takes the packed scale's negative end.
void round_sub_symmetric(const Format& f, Weights weights, std::byte* block) {
  const std::uint32_t n = sub_block(f), count = f.block / n;
  const int bias = sub_bias(f.sub.kind), top = sub_top(f.sub.kind);
  std::array<float, kMaxSubBlocks> scales;
  for (std::uint32_t j = 0; j < count; ++j) scales[j] = best_scale(f, weights.subspan(j * n, n));
  const float super = stored_scale(f, peak_of(std::span(scales).first(count)) / static_cast<float>(-bias));
  pack_scale(f.scale, super, block);
  Codes codes;
  for (std::uint32_t j = 0; j < count; ++j) {
    const int packed = nearest(ratio(scales[j], super), -bias, top - bias);
    pack_sub_scale(f, j, static_cast<std::uint32_t>(packed + bias), 0, block);
    round_to_levels(f, weights.subspan(j * n, n), super * static_cast<float>(packed), std::span(codes).subspan(j * n));
  }
  pack_codes(f, codes, block);
}

struct Line {
  float scale;
  float below;  // the subtracted minimum, at least 0
};

double round_to_line(const Format& f, Weights weights, Line line, std::span<std::uint8_t> codes) {
  const auto top = static_cast<float>(top_code(f));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float v = ratio(weights[i] + line.below, line.scale), above = v > 0.0f ? v : 0.0f;
    codes[i] = static_cast<std::uint8_t>(static_cast<int>(((above < top ? above : top) + 0x1.8p23f) - 0x1.8p23f));
  }
  double error = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double value = static_cast<double>(line.scale) * codes[i] - static_cast<double>(line.below);
    error += (static_cast<double>(weights[i]) - value) * (static_cast<double>(weights[i]) - value);
  }
  return error;
}

/// Returns the line that fits given codes best. It goes through zero if it would otherwise raise the weights.
Line fitted_line(Weights weights, std::span<const std::uint8_t> codes) {
  double n = 0, c = 0, cc = 0, w = 0, wc = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double weight = static_cast<double>(weights[i]);
    n += 1;
    c += codes[i];
    cc += static_cast<double>(codes[i]) * codes[i];
    w += weight;
    wc += weight * codes[i];
  }
  const double determinant = n * cc - c * c;
  if (determinant > 0) {
    const double scale = (n * wc - c * w) / determinant;
    const double below = (scale * c - w) / n;
    if (scale > 0 && below >= 0) return {static_cast<float>(scale), static_cast<float>(below)};
  }
  return {cc > 0 && wc > 0 ? static_cast<float>(wc / cc) : 0.0f, 0.0f};
}

Line best_line(const Format& f, Weights weights) {
  const auto [low, high] = std::ranges::minmax(weights);
  const float below = std::max(-low, 0.0f);
  const Line begin{std::max(high + below, 0.0f) / static_cast<float>(top_code(f)), below};
  Codes codes;
  Line best = begin;
  double least = -1.0;
  for (const float factor : kBeginnings) {
    Line line{begin.scale * factor, begin.below * factor};
    for (int fit = 0; fit < kFits; ++fit) {
      const double error = round_to_line(f, weights, line, codes);
      if (least < 0.0 || error < least) {
        least = error;
        best = line;
      }
      const Line next = fitted_line(weights, codes);
      if (next.scale == line.scale && next.below == line.below) break;
      line = next;
    }
  }
  return best;
}

void round_sub_min_max(const Format& f, Weights weights, std::byte* block) {
  const std::uint32_t n = sub_block(f), count = f.block / n;
  const int top = sub_top(f.sub.kind);
  std::array<Line, kMaxSubBlocks> lines;
  Line most{};
  for (std::uint32_t j = 0; j < count; ++j) {
    lines[j] = best_line(f, weights.subspan(j * n, n));
    most = {std::max(most.scale, lines[j].scale), std::max(most.below, lines[j].below)};
  }
  const float scale = stored_scale(f, most.scale / static_cast<float>(top));
  const float below = stored_scale(f, most.below / static_cast<float>(top));
  pack_scale(f.scale, scale, block);
  pack_scale(f.minimum, below, block);
  Codes codes;
  for (std::uint32_t j = 0; j < count; ++j) {
    const int packed = nearest(ratio(lines[j].scale, scale), 0, top);
    const int minimum = nearest(ratio(lines[j].below, below), 0, top);
    pack_sub_scale(f, j, static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(minimum), block);
    const Line line{scale * static_cast<float>(packed), below * static_cast<float>(minimum)};
    round_to_line(f, weights.subspan(j * n, n), line, std::span(codes).subspan(j * n));
  }
  pack_codes(f, codes, block);
}

void round_block(const Format& f, Weights weights, Block& out) {
  switch (f.rounding) {
    case Rounding::none:
    case Rounding::sub_min_max:
    case Rounding::sub_symmetric:
    case Rounding::elsewhere:
      return;
    case Rounding::min_max:
      return round_min_max(f, weights, out);
    case Rounding::mirrored:
      return round_mirrored(f, weights, out);
    case Rounding::symmetric:
      return round_symmetric(f, weights, out);
    case Rounding::third_of_mean:
      return round_third_of_mean(f, weights, out);
    case Rounding::signs:
      return round_signs(f, weights, out);
    case Rounding::nearest_level:
      return round_nearest_level(f, weights, out);
    case Rounding::power_of_two:
      return round_power_of_two(f, weights, out);
    case Rounding::fixed:
      return round_fixed(f, weights, out);
    case Rounding::least_path:
      return round_least_path(f, weights, out);
    case Rounding::ggml_signed_max:
      return round_ggml_signed_max(f, weights, out);
    case Rounding::ggml_min_max:
      return round_ggml_min_max(f, weights, out);
    case Rounding::ggml_symmetric:
      return round_ggml_symmetric(f, weights, out);
    case Rounding::ggml_ternary:
      return round_ggml_ternary(f, weights, out);
  }
}

}  // namespace

void quantize_block(const Format& f, std::span<const float> weights, std::byte* out) {
  std::fill_n(out, f.block_bytes, std::byte{0});
  if (f.rounding == Rounding::elsewhere) return;
  if (f.rounding == Rounding::sub_min_max) return round_sub_min_max(f, weights, out);
  if (f.rounding == Rounding::sub_symmetric) return round_sub_symmetric(f, weights, out);
  Block block;
  round_block(f, weights, block);
  pack_scale(f.scale, stored_scale(f, block.scale), out);
  pack_scale(f.minimum, block.minimum, out);
  pack_codes(f, block.codes, out);
}

}  // namespace qsf
