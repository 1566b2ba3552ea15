// What the search promises: its errors never cost more than those of plain rounding, by the weights that it was given.
#include "qsf/formats/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "formats/rows.h"

namespace qsf::test {
namespace {

/// Costs of columns, and what they carry to those before them, of no particular kind.
struct Given {
  std::vector<float> cost, carry;
  BlockCost of(const Format& f, bool carries) const {
    return {std::span(cost).first(f.block), carries ? carry.data() : nullptr, kMaxBlock};
  }
};

Given given(std::uint64_t seed) {
  Given out;
  Random random(seed);
  for (std::size_t i = 0; i < kMaxBlock; ++i) {
    const float x = random.symmetric();
    out.cost.push_back(0.01f + x * x * (i % 31 == 0 ? 40.0f : 1.0f));
  }
  out.carry.resize(kMaxBlock * kMaxBlock);
  for (float& x : out.carry) x = 0.1f * random.symmetric();
  return out;
}

/// The cost in doubles, from the values that a reader sees.
double cost_of(const Format& f, std::span<const float> weights, const Given& by, bool carries,
               std::span<const std::byte> bytes) {
  const std::vector<float> back = dequantized(f, bytes, weights.size());
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double away = double{weights[i]} - double{back[i]};
    for (std::size_t j = i + 1; carries && j < weights.size(); ++j) {
      away += double{by.carry[i * kMaxBlock + j]} * (double{weights[j]} - double{back[j]});
    }
    sum += double{by.cost[i]} * away * away;
  }
  return sum;
}

void search(const Format& f, std::span<const float> weights, const BlockCost& cost, std::vector<std::byte>& out) {
  out.resize(f.block_bytes);
  SearchedBlock one{weights, out.data()};
  search_blocks(f, cost, {&one, 1});
}

TEST(SearchTest, IsNeverWorseThanRounding) {
  const Given by = given(5);
  for (const Format& f : kFormats) {
    if (!f.quantized() || !rounds(f)) continue;
    for (const Spread spread : kSpreads) {
      for (const bool carries : {false, true}) {
        double plain = 0, sought = 0;
        const std::vector<float> all = spread_weights(spread, f.block * 12u);
        for (std::size_t at = 0; at < all.size(); at += f.block) {
          const std::span<const float> weights = std::span(all).subspan(at, f.block);
          std::vector<std::byte> rounded(f.block_bytes), found(f.block_bytes);
          quantize_block(f, weights, rounded.data());
          const double said = best_block(f, weights, by.of(f, carries), found.data());
          const double least = cost_of(f, weights, by, carries, rounded);
          const double cost = cost_of(f, weights, by, carries, found);
          ASSERT_LE(cost, least * (1 + 1e-4)) << f.name << " " << static_cast<int>(spread) << " " << carries;
          ASSERT_NEAR(said, cost, 1e-4 * cost) << f.name;
          plain += least;
          sought += cost;
        }
        if (f.scale.type == Scale::none || f.scale.type == Scale::exponent || f.code_bits > 4) continue;
        EXPECT_LT(sought, plain) << f.name << " " << static_cast<int>(spread) << " " << carries;
      }
    }
  }
}

TEST(SearchTest, FindsWeightsThatAFormatCanHold) {
  const Given by = given(6);
  for (const Format& f : kFormats) {
    if (!f.quantized() || !rounds(f) || f.scale.type == Scale::none || f.packing == Packing::trellis)
      continue;  // paths are chosen
    const std::vector<float> weights = dequantized(f, quantized(f, spread_weights(Spread::normal, f.block)), f.block);
    std::vector<std::byte> found;
    search(f, weights, by.of(f, true), found);
    double squares = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      squares += double{by.cost[i]} * double{weights[i]} * double{weights[i]};
    }
    EXPECT_LE(cost_of(f, weights, by, false, found), 1e-4 * squares) << f.name;
  }
}

TEST(SearchTest, ZerosStayZeros) {
  const Given by = given(7);
  const std::vector<float> weights(kMaxBlock);
  for (const Format& f : kFormats) {
    if (!f.quantized() || !rounds(f) || f.scale.type == Scale::none) continue;
    std::vector<std::byte> found;
    search(f, std::span(weights).first(f.block), by.of(f, true), found);
    for (const float w : dequantized(f, found, f.block)) ASSERT_EQ(w, 0.0f) << f.name;
  }
}

}  // namespace
}  // namespace qsf::test
