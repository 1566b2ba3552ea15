// Lines fitted four at a time, against a grid of lines whose errors are summed up in doubles.
#include "formats/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "formats/rows.h"

namespace qsf::test {
namespace {

constexpr std::size_t kWeights = 16;

double error_of(const Format& f, std::span<const float> weights, std::span<const float> cost, double scale,
                double minimum) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double least = -1;
    for (int code = f.code_bits == 8 ? 1 : 0; code < 1 << f.code_bits; ++code) {
      const double value = scale * (level(f, static_cast<std::uint8_t>(code)) - f.offset) + minimum;
      const double away = std::fabs(double{weights[i]} - value);
      if (least < 0 || away < least) least = away;
    }
    sum += double{cost[i]} * least * least;
  }
  return sum;
}

std::vector<float> costs() {
  Random random(3);
  std::vector<float> cost(kWeights);
  for (float& c : cost) c = 0.1f + std::fabs(random.symmetric());
  return cost;
}

TEST(FitTest, LinesThroughZeroAreNearTheBestOfAGrid) {
  const std::vector<float> cost = costs();
  for (const char* const name : {"q4_0", "q3_k", "iq4_nl", "bitnet-32", "q1_0"}) {
    const Format& f = format(name);
    const LineRules rules{&level_table(f), false, false};
    double found = 0, best = 0;
    for (const Spread spread : kSpreads) {
      const std::vector<float> all = spread_weights(spread, kWeights * 20);
      for (std::size_t at = 0; at < all.size(); at += kWeights) {
        const std::span<const float> weights = std::span(all).subspan(at, kWeights);
        const Line line = best_line(rules, weights, cost);
        ASSERT_EQ(line.minimum, 0.0f);
        double peak = 0;
        for (const float w : weights) peak = std::max(peak, std::fabs(double{w}));
        double least = error_of(f, weights, cost, 0, 0);
        for (int step = -400; step <= 400; ++step) {
          const double scale = peak * step / 200.0 / std::max(1.0, double{rules.table->high} - 1);
          least = std::min(least, error_of(f, weights, cost, scale, 0));
        }
        found += error_of(f, weights, cost, double{line.scale}, 0) / (peak * peak);
        best += least / (peak * peak);
      }
    }
    EXPECT_LE(found, 1.02 * best) << name;
  }
}

TEST(FitTest, LinesWithMinimaAreNearTheBestOfAGrid) {
  const std::vector<float> cost = costs();
  for (const char* const name : {"2bit", "3bit", "q4_1"}) {
    const Format& f = format(name);
    const LineRules rules{&level_table(f), true, false};
    double found = 0, best = 0;
    for (const Spread spread : kSpreads) {
      const std::vector<float> all = spread_weights(spread, kWeights * 6);
      for (std::size_t at = 0; at < all.size(); at += kWeights) {
        const std::span<const float> weights = std::span(all).subspan(at, kWeights);
        const Line line = best_line(rules, weights, cost);
        const auto [low, high] = std::ranges::minmax(weights);
        const double range = double{high} - double{low};
        double least = -1;
        for (int from = -10; from <= 40; ++from) {
          for (int to = from + 5; to <= 70; ++to) {
            const double minimum = double{low} + range * from / 60, top = double{low} + range * to / 60;
            const double error = error_of(f, weights, cost, (top - minimum) / double{rules.table->high}, minimum);
            if (least < 0 || error < least) least = error;
          }
        }
        found += error_of(f, weights, cost, double{line.scale}, double{line.minimum}) / (range * range);
        best += least / (range * range);
      }
    }
    EXPECT_LE(found, 1.05 * best) << name;
  }
}

TEST(FitTest, FourLinesErrAsEachByItself) {
  const std::vector<float> cost = costs(), weights = spread_weights(Spread::normal, kWeights);
  for (const char* const name : {"q4_1", "iq4_nl"}) {
    const Format& f = format(name);
    const Lines lines{{0.01f, 0.02f, -0.013f, 0.0f}, {0.0f, -0.1f, 0.02f, 0.05f}};
    const FitLanes errors = errors_of(level_table(f), weights, cost, lines);
    for (std::uint32_t k = 0; k < kFitLanes; ++k) {
      const double error = error_of(f, weights, cost, double{lines.scale[k]}, double{lines.minimum[k]});
      EXPECT_NEAR(errors[k], error, 1e-5 * error) << name << " " << k;
    }
  }
}

}  // namespace
}  // namespace qsf::test
