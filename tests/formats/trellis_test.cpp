// Trellises: levels by the file format's formulas, and paths beside the best of all in doubles.
#include "formats/trellis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "formats/rows.h"

namespace qsf::test {
namespace {

using Codes = std::vector<std::uint8_t>;

constexpr std::array<std::uint32_t, 3> kBits{2, 3, 4};

constexpr std::uint32_t columns_of(std::uint32_t bits) { return bits == 2 ? 16 : 32; }

/// Column by column in the order of the chain.
std::vector<std::uint32_t> chain(std::uint32_t bits) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t first = 0; first < 4; ++first) {
    for (std::uint32_t column = first; column < columns_of(bits); column += 4) out.push_back(column);
  }
  return out;
}

/// As docs/reference/format.md has it: a code and the three behind it.
int level_of(std::uint32_t bits, std::uint32_t c, std::uint32_t c1, std::uint32_t c2, std::uint32_t c3) {
  const auto& [a, b] = kTrellisTables[bits - 2].entries;
  switch (bits) {
    case 2:
      return a[c + 4 * c1];
    case 3:
      return a[c % 4 + 4 * (c1 % 4)] ^ b[c / 4 + 2 * (c1 / 4) + 4 * (c2 / 4) + 8 * (c3 / 4)];
    default:
      return a[c] ^ b[c1];
  }
}

/// By columns, less the offset.
std::vector<double> levels_of(std::uint32_t bits, const Codes& codes) {
  const std::vector<std::uint32_t> order = chain(bits);
  std::vector<double> out(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) {
    const auto code = [&](std::size_t k) { return std::uint32_t{codes[order[(p + k) % order.size()]]}; };
    out[order[p]] = level_of(bits, code(0), code(1), code(2), code(3)) - 64;
  }
  return out;
}

/// The least sum of squares of any codes: from every three codes at the chain's end round to the same.
double least_of_all(std::uint32_t bits, std::span<const float> weights) {
  const std::vector<std::uint32_t> order = chain(bits);
  const std::size_t n = std::size_t{1} << bits, states = n * n * n;  // codes behind a place
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t end = 0; end < states; ++end) {
    std::vector<double> cost(states, std::numeric_limits<double>::infinity());
    cost[end] = 0;
    for (std::size_t p = order.size(); p-- > 0;) {
      std::vector<double> next(states, std::numeric_limits<double>::infinity());
      for (std::size_t s = 0; s < states; ++s) {
        if (!std::isfinite(cost[s])) continue;
        for (std::size_t c = 0; c < n; ++c) {
          const int level = level_of(bits, static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(s % n),
                                     static_cast<std::uint32_t>(s / n % n), static_cast<std::uint32_t>(s / n / n));
          const double away = double{weights[order[p]]} - (level - 64);
          double& to = next[(s * n + c) % states];
          to = std::min(to, cost[s] + away * away);
        }
      }
      cost = std::move(next);
    }
    least = std::min(least, cost[end]);
  }
  return least;
}

std::vector<float> some_weights(std::size_t n, std::uint64_t seed) {
  std::vector<float> out = random_weights(n, seed);
  double squares = 0;
  for (const float w : out) squares += double{w} * double{w};
  for (float& w : out) w *= kTrellisSpread / static_cast<float>(std::sqrt(squares / static_cast<double>(n)));
  return out;
}

double square(double x) { return x * x; }

ChainCost ones(std::uint32_t bits) {
  const std::vector<float> cost(columns_of(bits), 1.0f);
  return chain_cost(bits, cost, nullptr, 0);
}

TEST(Trellis, LevelsAreTheDocuments) {
  Random random(5);
  for (const std::uint32_t bits : kBits) {
    for (int n = 0; n < 200; ++n) {
      Codes codes(columns_of(bits));
      for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random.next() >> 40 & ((1u << bits) - 1));
      Codes levels = codes;
      trellis_levels(bits, levels);
      const std::vector<double> expected = levels_of(bits, codes);
      for (std::size_t i = 0; i < codes.size(); ++i)
        ASSERT_EQ(levels[i] - 64, expected[i]) << bits << " bits, column " << i;
    }
  }
}

// The state that a chain ends with is chosen before it is walked, so that a path may miss the best one: by a tenth at
// most.
TEST(Trellis, PathsAreNearTheBestOfAll) {
  for (const std::uint32_t bits : {2u, 3u}) {
    double found = 0, least = 0;
    const int groups = bits == 2 ? 40 : 3;
    for (int n = 0; n < groups; ++n) {
      const std::vector<float> weights = some_weights(columns_of(bits), 100 + static_cast<std::uint64_t>(n));
      Codes codes(weights.size());
      std::vector<float> floats(weights.size());
      least_path(bits, weights, ones(bits), {codes, floats});
      const std::vector<double> levels = levels_of(bits, codes);
      EXPECT_TRUE(std::ranges::equal(floats, levels));
      double cost = 0;
      for (std::size_t i = 0; i < codes.size(); ++i) cost += square(double{weights[i]} - levels[i]);
      const double best = least_of_all(bits, weights);
      EXPECT_GE(cost, best * (1 - 1e-6));
      found += cost;
      least += best;
    }
    EXPECT_LE(found, 1.1 * least) << bits;
  }
}

struct Carried {
  std::vector<float> cost, carry;

  std::size_t n() const { return cost.size(); }
};
/// Columns of which each carries to those before it.
Carried carried(std::uint32_t bits, std::uint64_t seed) {
  Random random(seed);
  const std::size_t n = columns_of(bits);
  Carried out{std::vector<float>(n), std::vector<float>(n * n)};
  for (float& x : out.cost) x = 0.2f + square(random.symmetric());
  for (float& x : out.carry) x = 0.3f * random.symmetric();
  return out;
}

double cost_of(const Carried& by, std::span<const double> errors) {
  double sum = 0;
  for (std::size_t i = 0; i < by.n(); ++i) {
    double away = errors[i];
    for (std::size_t j = i + 1; j < by.n(); ++j) away += double{by.carry[i * by.n() + j]} * errors[j];
    sum += double{by.cost[i]} * away * away;
  }
  return sum;
}

TEST(Trellis, ErrorsCostTheSameByPlacesAndByColumns) {
  Random random(8);
  for (const std::uint32_t bits : kBits) {
    const std::vector<std::uint32_t> order = chain(bits);
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const Carried by = carried(bits, seed);
      const ChainCost chained = chain_cost(bits, by.cost, by.carry.data(), by.n());
      std::vector<double> errors(by.n());
      for (double& e : errors) e = double{random.symmetric()};
      double sum = 0;
      for (std::size_t p = 0; p < by.n(); ++p) {
        double away = errors[order[p]];
        for (std::size_t q = p + 1; q < by.n(); ++q) away += double{chained.carry[p][q]} * errors[order[q]];
        sum += double{chained.cost[p]} * away * away;
      }
      const double expected = cost_of(by, errors);
      EXPECT_NEAR(sum, expected, 1e-4 * expected);
    }
  }
}

std::vector<double> errors_of(std::uint32_t bits, std::span<const float> weights, const Codes& codes) {
  std::vector<double> out = levels_of(bits, codes);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = double{weights[i]} - out[i];
  return out;
}

// Each state's own errors are carried: with them in sight paths cost less than where every column counts for itself.
TEST(Trellis, PathsSeeWhatTheirErrorsCarry) {
  for (const std::uint32_t bits : kBits) {
    double blind = 0, seeing = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
      const Carried by = carried(bits, seed);
      const std::vector<float> weights = some_weights(by.n(), seed);
      const auto cost = [&](const ChainCost& chained) {
        Codes codes(by.n());
        std::vector<float> floats(by.n());
        least_path(bits, weights, chained, {codes, floats});
        return cost_of(by, errors_of(bits, weights, codes));
      };
      blind += cost(ones(bits));
      seeing += cost(chain_cost(bits, by.cost, by.carry.data(), by.n()));
    }
    EXPECT_LE(seeing, 0.8 * blind) << bits;
  }
}

// From codes that were chosen with no regard to what is carried, and beside columns that pull at these: what is said to
// cost less does, and all together less than paths from scratch that do not see what pulls.
TEST(Trellis, CodesAreImprovedWhileOthersStay) {
  for (const std::uint32_t bits : kBits) {
    double before = 0, after = 0, scratch = 0;
    int changed = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
      const Carried by = carried(bits, seed);
      const std::size_t n = by.n();
      const std::vector<float> weights = some_weights(n, seed);
      const auto product = [&](std::size_t i, std::size_t j) {  // a moment of two columns
        double sum = 0;
        for (std::size_t k = 0; k <= std::min(i, j); ++k) {
          const auto u = [&](std::size_t of) { return of == k ? 1.0 : double{by.carry[k * n + of]}; };
          sum += double{by.cost[k]} * u(i) * u(j);
        }
        return sum;
      };
      std::vector<float> moments(n * n);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) moments[i * n + j] = static_cast<float>(product(i, j));
      }
      Random random(seed);
      std::vector<double> others(n);  // H of the errors of columns elsewhere
      for (double& pull : others) pull = 3 * double{random.symmetric()};
      const auto cost = [&](const Codes& codes) {
        const std::vector<double> errors = errors_of(bits, weights, codes);
        double sum = cost_of(by, errors);
        for (std::size_t i = 0; i < n; ++i) sum += 2 * errors[i] * others[i];
        return sum;
      };
      Codes codes(n);
      std::vector<float> floats(n);
      const ChainPath path{codes, floats};
      least_path(bits, weights, ones(bits), path);
      const std::vector<double> errors = errors_of(bits, weights, codes);
      std::vector<float> pull(n);
      for (std::size_t i = 0; i < n; ++i) {
        double sum = others[i];
        for (std::size_t j = 0; j < n; ++j) sum += product(i, j) * errors[j];
        pull[i] = static_cast<float>(sum);
      }
      const double stays = cost(codes);
      const ChainCost chained = chain_cost(bits, moments.data(), n);
      if (improve_path(bits, pull, chained, path)) {
        ++changed;
        EXPECT_LT(cost(codes), stays) << bits << " bits, seed " << seed;
      }
      before += stays;
      after += cost(codes);
      least_path(bits, weights, chained, path);
      scratch += cost(codes);
    }
    EXPECT_GE(changed, 20) << bits;
    EXPECT_LT(after, scratch) << bits << " bits: " << before << " at first";
  }
}

}  // namespace
}  // namespace qsf::test
