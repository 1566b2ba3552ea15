// How weights become codes: nothing nearer, errors within bounds on every kind of data, rules read literally.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/rows.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

// No other code of the block would come nearer to the weight, but for what the arithmetic of the choice rounds: GGML's
// divides by the scale before it is rounded to fp16 (by 2^-11 of itself, or 2^-25), and its minimum likewise.
TEST(RoundingTest, EveryCodeIsTheNearest) {
  for (const Format& f : kFormats) {
    const bool by_rule = f.rounding == Rounding::third_of_mean || f.rounding == Rounding::ggml_ternary;
    if (!f.quantized() || by_rule || !rounds(f)) continue;
    for (const float size : {1.0f, 1e-2f, 100.0f}) {
      std::vector<float> weights = random_weights(f.block * 20u, 9);
      for (float& w : weights) w = w * size + (f.has_min() ? 0.03f * size : 0.0f);
      const std::vector<std::byte> bytes = quantized(f, weights);
      const std::vector<float> back = dequantized(f, bytes, weights.size());
      BlockValues block;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        unpack_block(f, bytes.data() + i / f.block * f.block_bytes, block);
        const std::size_t sub = i % f.block / sub_block(f);
        const double scale = static_cast<double>(block.scales[sub]);
        const double minimum = f.has_min() ? static_cast<double>(block.minima[sub]) : 0.0;
        double least = std::numeric_limits<double>::infinity();
        for (int code = 0; code < 1 << f.code_bits; ++code) {
          const double value = scale * (level(f, static_cast<std::uint8_t>(code)) - f.offset) + minimum;
          least = std::min(least, std::fabs(value - static_cast<double>(weights[i])));
        }
        const double ends = std::fabs(minimum) + std::fabs(scale) * (1 << f.code_bits);
        ASSERT_LE(std::fabs(static_cast<double>(back[i]) - static_cast<double>(weights[i])),
                  least + ends * 0x1p-10 + std::ldexp(2.0, f.code_bits - 25))
            << f.name << " " << i;
      }
    }
  }
}

double root_mean_square(std::span<const double> values) {
  double sum = 0.0;
  for (const double v : values) sum += v * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// What a plain choice of scale (and minimum) would leave of a sub-block, in double precision: the range over its codes,
// or the largest magnitude at the end of the levels.
std::vector<double> plain_errors(const Format& f, std::span<const float> weights) {
  const auto [low, high] = std::ranges::minmax(weights);
  const double from = std::min(0.0, static_cast<double>(low));
  const double most = std::max(std::fabs(static_cast<double>(low)), std::fabs(static_cast<double>(high)));
  const int top = (1 << f.code_bits) - 1;
  const double scale = f.has_min() ? std::max(0.0, static_cast<double>(high) - from) / top
                                   : (std::fabs(low) > high ? -most : most) / (level(f, 0) - f.offset);
  std::vector<double> errors;
  for (const float w : weights) {
    double least = std::numeric_limits<double>::infinity();
    for (int code = 0; code <= top; ++code) {
      const double value =
          f.has_min() ? scale * code + from : scale * (level(f, static_cast<std::uint8_t>(code)) - f.offset);
      least = std::min(least, std::fabs(value - static_cast<double>(w)));
    }
    errors.push_back(least);
  }
  return errors;
}

// Fitting must not be worse than not fitting. A packed sub-scale may miss the fitted one by half a step, a minimum
// likewise, and codes only get better by being chosen again: by the triangle inequality the root mean square grows by
// at most half a step times the largest level, and half a step. fp16 adds 2^-11 of scale and minimum.
TEST(RoundingTest, FittedScalesAreNoWorseThanPlainOnes) {
  for (const Format& f : kFormats) {
    const bool fitted = f.rounding == Rounding::nearest_level || f.rounding == Rounding::sub_min_max ||
                        f.rounding == Rounding::sub_symmetric;
    if (!fitted) continue;
    for (const Spread spread : kSpreads) {
      const std::vector<float> weights = spread_weights(spread, 16u * f.block);
      const std::vector<std::byte> bytes = quantized(f, weights);
      const std::vector<float> back = dequantized(f, bytes, weights.size());
      const std::size_t n = sub_block(f);
      BlockValues block;
      double total = 0.0, allowed = 0.0;
      for (std::size_t begin = 0; begin < weights.size(); begin += n) {
        const std::byte* const at = bytes.data() + begin / f.block * f.block_bytes;
        unpack_block(f, at, block);
        std::vector<double> errors;
        for (std::size_t i = begin; i < begin + n; ++i) {
          errors.push_back(static_cast<double>(back[i]) - static_cast<double>(weights[i]));
        }
        int most = 0;
        for (int code = 0; code < 1 << f.code_bits; ++code) {
          most = std::max(most, std::abs(level(f, static_cast<std::uint8_t>(code)) - f.offset));
        }
        const std::size_t sub = begin % f.block / n;
        const auto half = [&](const Field& field) {
          return f.sub.kind == Sub::none || field.type == Scale::none
                     ? 0.0
                     : 0.5 * std::fabs(static_cast<double>(f16_to_f32(load_le<f16>(at + field.at))));
        };
        const double f16_rounding = 0x1p-10 * (std::fabs(static_cast<double>(block.scales[sub])) * most +
                                               (f.has_min() ? std::fabs(static_cast<double>(block.minima[sub])) : 0.0));
        total += root_mean_square(errors);
        allowed += root_mean_square(plain_errors(f, std::span(weights).subspan(begin, n))) + half(f.scale) * most +
                   half(f.minimum) + f16_rounding;
      }
      EXPECT_LE(total, allowed) << f.name << " spread " << static_cast<int>(spread);
      EXPECT_GT(total, 0.0);
    }
  }
}

// The range over the codes bounds the error of the plain roundings: half a step, a whole one where GGML's types have no
// code for the end opposite the largest weight; fp16 moves the ends by 2^-11 each.
TEST(RoundingTest, PlainScalesErrByHalfAStep) {
  for (const Format& f : kFormats) {
    if (!rounds(f)) continue;
    for (const Spread spread : kSpreads) {
      const std::vector<float> weights = spread_weights(spread, 16u * f.block);
      const std::vector<float> back = dequantized(f, quantized(f, weights), weights.size());
      for (std::size_t begin = 0; begin < weights.size(); begin += f.block) {
        const std::span<const float> of_block = std::span(weights).subspan(begin, f.block);
        const auto [low, high] = std::ranges::minmax(of_block);
        const double most = std::max(std::fabs(static_cast<double>(low)), std::fabs(static_cast<double>(high)));
        const int top = (1 << f.code_bits) - 1;
        double bound = 0.0;
        switch (f.rounding) {
          case Rounding::min_max:
          case Rounding::ggml_min_max:
            bound = (static_cast<double>(high) - static_cast<double>(low)) / top / 2;
            break;
          case Rounding::mirrored:
            bound = most / top;
            break;
          case Rounding::symmetric:
          case Rounding::ggml_symmetric:
            bound = most / 254;
            break;
          case Rounding::ggml_signed_max:
            bound = most / f.offset;
            break;
          case Rounding::ggml_ternary:
            bound = most / 2;
            break;
          default:
            continue;
        }
        bound += most * 0x1p-9 + 0x1p-24 * top;
        for (std::size_t i = 0; i < f.block; ++i) {
          ASSERT_LE(std::fabs(static_cast<double>(back[begin + i]) - static_cast<double>(of_block[i])), bound)
              << f.name;
        }
      }
    }
  }
}

// The rules that are no roundings, read literally: a third of the mean, and the sign.
TEST(RoundingTest, TernaryAndSignsFollowTheirRules) {
  for (const Format& f : kFormats) {
    if (f.rounding != Rounding::third_of_mean && f.rounding != Rounding::signs) continue;
    for (const Spread spread : kSpreads) {
      const std::vector<float> weights = spread_weights(spread, 16u * f.block);
      const std::vector<float> back = dequantized(f, quantized(f, weights), weights.size());
      for (std::size_t begin = 0; begin < weights.size(); begin += f.block) {
        double mean = 0.0;
        for (std::size_t i = 0; i < f.block; ++i) mean += std::fabs(static_cast<double>(weights[begin + i])) / f.block;
        for (std::size_t i = begin; i < begin + f.block; ++i) {
          const double w = static_cast<double>(weights[i]);
          const bool near = std::fabs(std::fabs(w) - 0.3 * mean) < mean * 0x1p-10;  // either, after fp16
          const bool zero = f.rounding == Rounding::third_of_mean && std::fabs(w) < 0.3 * mean;
          const double expected = zero ? 0.0 : std::copysign(mean, w);
          if (!near) {
            EXPECT_NEAR(static_cast<double>(back[i]), expected, mean * 0x1p-10) << f.name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
