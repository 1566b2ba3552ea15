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

using Codes = std::array<std::uint8_t, kGroup>;

constexpr std::array<std::uint32_t, 3> kBits{2, 3, 4};

/// The chains of a group, each column by column.
std::vector<std::vector<std::uint32_t>> chains(std::uint32_t bits) {
  std::vector<std::vector<std::uint32_t>> out;
  const std::uint32_t length = bits == 2 ? kGroup / 2 : kGroup;
  for (std::uint32_t begin = 0; begin < kGroup; begin += length) {
    std::vector<std::uint32_t>& chain = out.emplace_back();
    for (std::uint32_t first = 0; first < 4; ++first) {
      for (std::uint32_t column = begin + first; column < begin + length; column += 4) chain.push_back(column);
    }
  }
  return out;
}

/// As docs/format.md has it: a code and the three behind it.
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
  std::vector<double> out(kGroup);
  for (const std::vector<std::uint32_t>& chain : chains(bits)) {
    for (std::size_t p = 0; p < chain.size(); ++p) {
      const auto code = [&](std::size_t k) { return std::uint32_t{codes[chain[(p + k) % chain.size()]]}; };
      out[chain[p]] = level_of(bits, code(0), code(1), code(2), code(3)) - 64;
    }
  }
  return out;
}

/// The least sum of squares of any codes of a chain: from every three codes at its end round to the same.
double least_of_chain(std::uint32_t bits, std::span<const float> weights, std::span<const std::uint32_t> chain) {
  const std::size_t n = std::size_t{1} << bits, states = n * n * n;  // codes behind a place
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t end = 0; end < states; ++end) {
    std::vector<double> cost(states, std::numeric_limits<double>::infinity());
    cost[end] = 0;
    for (std::size_t p = chain.size(); p-- > 0;) {
      std::vector<double> next(states, std::numeric_limits<double>::infinity());
      for (std::size_t s = 0; s < states; ++s) {
        if (!std::isfinite(cost[s])) continue;
        for (std::size_t c = 0; c < n; ++c) {
          const int level = level_of(bits, static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(s % n),
                                     static_cast<std::uint32_t>(s / n % n), static_cast<std::uint32_t>(s / n / n));
          const double away = double{weights[chain[p]]} - (level - 64);
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
double least_of_all(std::uint32_t bits, std::span<const float> weights) {
  double sum = 0;
  for (const std::vector<std::uint32_t>& chain : chains(bits)) sum += least_of_chain(bits, weights, chain);
  return sum;
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
  const std::vector<float> cost(kGroup, 1.0f);
  return chain_cost(bits, cost, nullptr, 0);
}

TEST(Trellis, LevelsAreTheDocuments) {
  Random random(5);
  for (const std::uint32_t bits : kBits) {
    for (int n = 0; n < 200; ++n) {
      Codes codes;
      for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random.next() >> 40 & ((1u << bits) - 1));
      Codes levels = codes;
      trellis_levels(bits, levels);
      const std::vector<double> expected = levels_of(bits, codes);
      for (std::size_t i = 0; i < kGroup; ++i) ASSERT_EQ(levels[i] - 64, expected[i]) << bits << " bits, column " << i;
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
      const std::vector<float> weights = some_weights(kGroup, 100 + static_cast<std::uint64_t>(n));
      Codes codes;
      least_path(bits, weights, ones(bits), codes);
      const std::vector<double> levels = levels_of(bits, codes);
      double cost = 0;
      for (std::size_t i = 0; i < kGroup; ++i) cost += square(double{weights[i]} - levels[i]);
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
};
/// Columns of which each carries to those before it.
Carried carried(std::uint64_t seed) {
  Random random(seed);
  Carried out{std::vector<float>(kGroup), std::vector<float>(kGroup * kGroup)};
  for (float& x : out.cost) x = 0.2f + square(random.symmetric());
  for (float& x : out.carry) x = 0.3f * random.symmetric();
  return out;
}

double cost_of(const Carried& by, std::span<const double> errors) {
  double sum = 0;
  for (std::size_t i = 0; i < kGroup; ++i) {
    double away = errors[i];
    for (std::size_t j = i + 1; j < kGroup; ++j) away += double{by.carry[i * kGroup + j]} * errors[j];
    sum += double{by.cost[i]} * away * away;
  }
  return sum;
}

TEST(Trellis, ErrorsCostTheSameByPlacesAndByColumns) {
  Random random(8);
  for (const std::uint32_t bits : kBits) {
    std::vector<std::uint32_t> order;
    for (const std::vector<std::uint32_t>& chain : chains(bits)) order.insert(order.end(), chain.begin(), chain.end());
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const Carried by = carried(seed);
      const ChainCost chained = chain_cost(bits, by.cost, by.carry.data(), kGroup);
      std::vector<double> errors(kGroup);
      for (double& e : errors) e = double{random.symmetric()};
      double sum = 0;
      for (std::size_t p = 0; p < kGroup; ++p) {
        double away = errors[order[p]];
        for (std::size_t q = p + 1; q < kGroup; ++q) away += double{chained.carry[p][q]} * errors[order[q]];
        sum += double{chained.cost[p]} * away * away;
      }
      const double expected = cost_of(by, errors);
      EXPECT_NEAR(sum, expected, 1e-4 * expected);
    }
  }
}

// Each state's own errors are carried: with them in sight paths cost less than where every column counts for itself.
TEST(Trellis, PathsSeeWhatTheirErrorsCarry) {
  for (const std::uint32_t bits : kBits) {
    double blind = 0, seeing = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
      const Carried by = carried(seed);
      const std::vector<float> weights = some_weights(kGroup, seed);
      const auto cost = [&](const ChainCost& chained) {
        Codes codes;
        least_path(bits, weights, chained, codes);
        std::vector<double> errors = levels_of(bits, codes);
        for (std::size_t i = 0; i < kGroup; ++i) errors[i] = double{weights[i]} - errors[i];
        return cost_of(by, errors);
      };
      blind += cost(ones(bits));
      seeing += cost(chain_cost(bits, by.cost, by.carry.data(), kGroup));
    }
    EXPECT_LE(seeing, 0.8 * blind) << bits;
  }
}

}  // namespace
}  // namespace qsf::test
