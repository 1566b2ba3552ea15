// Blocks that the converter searches for: the formats are held to GGML's reference (gguf_parts_test.cpp), so that the
// weights of a block are known.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "converter/moments.h"
#include "converter/rounding/measure.h"
#include "converter/types/written_type.h"
#include "formats/rows.h"
#include "qsf/formats/search.h"

namespace qsf::test {
namespace {

using convert::Moments;
using convert::RowCost;

/// Bytes of a block that hold its scale.
struct Scale {
  std::size_t begin, end;
};
struct WrittenType {
  const char* name;
  Scale scale;
  double most;  // of their squares that normal weights lose
};
constexpr std::array kWritten{
    WrittenType{"iq1_s", {0, 2}, 0.25},  WrittenType{"iq1_m", {48, 56}, 0.22}, WrittenType{"iq2_xxs", {0, 2}, 0.11},
    WrittenType{"iq2_xs", {0, 2}, 0.09}, WrittenType{"iq2_s", {0, 2}, 0.07},   WrittenType{"iq3_xxs", {0, 2}, 0.035},
    WrittenType{"iq3_s", {0, 2}, 0.02},  WrittenType{"nvfp4", {0, 0}, 0.012},  WrittenType{"nvfp4_f32", {0, 4}, 0.012},
};

std::vector<float> decoded(const Format& type, std::span<const std::byte> block) {
  return dequantized(type, block, type.block);
}

double cost_of(std::span<const float> weights, std::span<const float> back, std::span<const float> cost) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double e = double{weights[i]} - double{back[i]};
    sum += double{cost[i]} * e * e;
  }
  return sum;
}

std::vector<float> costs(std::size_t n) {
  Random random(11);
  std::vector<float> out(n);
  for (float& c : out) c = 0.1f + std::abs(random.symmetric());
  return out;
}

TEST(Searches, AreThoseOfFormatsThatNothingElseRoundsTo) {
  std::size_t n = 0;
  for (const Format& format : kFormats) {
    EXPECT_EQ(search_of(format) != nullptr, !rounds(format)) << format.name;
    n += rounds(format) ? 0u : 1u;
  }
  EXPECT_EQ(n, kWritten.size());
  EXPECT_EQ(*convert::written_id("IQ2_xxs"), ggml_type(16));
  EXPECT_FALSE(convert::written_id("q8_k"));
  EXPECT_FALSE(convert::written_id("f64"));
}

TEST(Searches, LoseLittle) {
  const std::vector<float> weights = spread_weights(Spread::normal, 2048);
  for (const WrittenType& each : kWritten) {
    const Format& type = format(each.name);
    const std::vector<float> ones(type.block, 1.0f), zeros(type.block, 0.0f);
    double lost = 0, whole = 0;
    for (std::size_t at = 0; at < weights.size(); at += type.block) {
      const std::span<const float> x = std::span(weights).subspan(at, type.block);
      std::vector<std::byte> block(type.block_bytes);
      search_of(type)(x, {}, block.data());
      lost += cost_of(x, decoded(type, block), ones);
      whole += cost_of(x, zeros, ones);
    }
    EXPECT_LT(lost / whole, each.most) << each.name;
  }
}

// No other value of any byte costs less, but for those of the scale itself: points, signs, forms and sub-scales are
// the best ones for it.
TEST(Searches, NoByteCouldBeBetter) {
  for (const WrittenType& each : kWritten) {
    const Format& type = format(each.name);
    for (const Spread spread : kSpreads) {
      const std::vector<float> weights = spread_weights(spread, type.block), cost = costs(type.block);
      std::vector<std::byte> block(type.block_bytes);
      search_of(type)(weights, {cost}, block.data());
      const double least = cost_of(weights, decoded(type, block), cost);
      for (std::size_t at = 0; at < block.size(); ++at) {
        if (at >= each.scale.begin && at < each.scale.end) continue;
        const std::byte was = block[at];
        for (unsigned other = 0; other < 256; ++other) {
          block[at] = static_cast<std::byte>(other);
          const double now = cost_of(weights, decoded(type, block), cost);
          ASSERT_GE(now, least * (1 - 1e-5))
              << each.name << " " << static_cast<int>(spread) << " byte " << at << " " << other;
        }
        block[at] = was;
      }
    }
  }
}

TEST(Searches, EveryScaleStaysFinite) {
  for (const WrittenType& each : kWritten) {
    const Format& type = format(each.name);
    for (const float scale : {0.0f, 1e-30f, 1e-6f, 1.0f, 60000.0f}) {
      std::vector<float> weights = spread_weights(Spread::uniform, type.block);
      for (float& w : weights) w *= scale;
      std::vector<std::byte> block(type.block_bytes);
      search_of(type)(weights, {}, block.data());
      for (const float w : decoded(type, block)) {
        ASSERT_TRUE(std::isfinite(w)) << each.name;
        if (scale < 1e-9f && type.scale.type != qsf::Scale::f32) {
          ASSERT_EQ(std::abs(w), 0) << each.name;
        }
      }
    }
  }
}

TEST(Searches, ErrorsAreMadeUpFor) {
  constexpr std::uint32_t kCols = 512, kRows = 16;
  const std::vector<float> weights = spread_weights(Spread::normal, std::size_t{kRows} * kCols);
  const Moments moments = some_moments(kCols, 256, 5000);
  const RowCost cost = RowCost::of(moments);
  std::vector<float> own;
  for (std::uint32_t i = 0; i < kCols; ++i) own.push_back(static_cast<float>(moments.of(i, i)));
  const RowCost single = RowCost::of({kCols, 1, moments.n, std::make_shared<const std::vector<float>>(own)});
  for (const WrittenType& each : kWritten) {
    const Format& type = format(each.name);
    const auto lost = [&](const RowCost& by) {
      std::vector<std::byte> rows(kRows * kCols / type.block * type.block_bytes);
      by.quantize(type, weights, rows);
      std::vector<float> errors;
      for (std::size_t at = 0; at < rows.size(); at += type.block_bytes) {
        for (const float w : decoded(type, std::span(rows).subspan(at, type.block_bytes))) errors.push_back(w);
      }
      double sum = 0;
      for (std::size_t i = 0; i < errors.size(); ++i) errors[i] = weights[i] - errors[i];
      for (std::size_t r = 0; r < kRows; ++r) sum += cost(std::span(errors).subspan(r * kCols, kCols));
      return sum;
    };
    EXPECT_LT(lost(cost), 0.9 * lost(single)) << each.name;
  }
}

}  // namespace
}  // namespace qsf::test
