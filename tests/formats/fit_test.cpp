// Lines fitted four at a time, against a grid of lines whose errors are summed up in doubles.
#include "formats/fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
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

/// Fits `blocks` of every spread; `best_of_grid` gives the least error among a grid's lines, and what scales a block.
template <class Grid>
void expect_near_best(const LineRules& rules, const Format& f, std::size_t blocks, double limit, Grid best_of_grid) {
  const std::vector<float> cost = costs();
  double found = 0, best = 0;
  for (const Spread spread : kSpreads) {
    const std::vector<float> all = spread_weights(spread, kWeights * blocks);
    for (std::size_t at = 0; at < all.size(); at += kWeights) {
      const std::span<const float> weights = std::span(all).subspan(at, kWeights);
      const Line line = best_line(rules, weights, cost);
      if (!rules.minimum) {
        EXPECT_EQ(line.minimum, 0.0f);
      }
      const auto error = [&](double scale, double minimum) { return error_of(f, weights, cost, scale, minimum); };
      const auto [least, size] = best_of_grid(weights, error);
      found += error(double{line.scale}, double{line.minimum}) / (size * size);
      best += least / (size * size);
    }
  }
  EXPECT_LE(found, limit * best) << f.name;
}

TEST(FitTest, LinesThroughZeroAreNearTheBestOfAGrid) {
  for (const char* const name : {"q4_0", "q3_k", "iq4_nl", "bitnet-32", "q1_0"}) {
    const Format& f = format(name);
    const LineRules rules{&level_table(f), false, false};
    expect_near_best(rules, f, 20, 1.02, [&](std::span<const float> weights, auto error) {
      double peak = 0;
      for (const float w : weights) peak = std::max(peak, std::fabs(double{w}));
      double least = error(0, 0);
      for (int step = -400; step <= 400; ++step) {
        least = std::min(least, error(peak * step / 200.0 / std::max(1.0, double{rules.table->high} - 1), 0));
      }
      return std::pair(least, peak);
    });
  }
}

TEST(FitTest, LinesWithMinimaAreNearTheBestOfAGrid) {
  for (const char* const name : {"2bit", "3bit", "q4_1"}) {
    const Format& f = format(name);
    const LineRules rules{&level_table(f), true, false};
    expect_near_best(rules, f, 6, 1.05, [&](std::span<const float> weights, auto error) {
      const auto [low, high] = std::ranges::minmax(weights);
      const double range = double{high} - double{low};
      double least = std::numeric_limits<double>::infinity();
      for (int from = -10; from <= 40; ++from) {
        for (int to = from + 5; to <= 70; ++to) {
          const double minimum = double{low} + range * from / 60, top = double{low} + range * to / 60;
          least = std::min(least, error((top - minimum) / double{rules.table->high}, minimum));
        }
      }
      return std::pair(least, range);
    });
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
