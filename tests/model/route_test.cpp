// Which experts a column takes.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "model/routing.h"

namespace qsf {
namespace {

using Ids = std::vector<std::uint32_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

Ids chosen(const std::vector<float>& keys, std::size_t used, const float* bias = nullptr) {
  Ids out(used);
  choose_experts(keys, bias, out);
  return out;
}

TEST(Route, TheLargestComeFirst) {
  EXPECT_EQ(chosen({0.5f, -1, 3, 2}, 3), (Ids{2, 3, 0}));
  EXPECT_EQ(chosen({4}, 1), Ids{0});
}

TEST(Route, OfEqualOnesTheLowerIndexIsTaken) {
  EXPECT_EQ(chosen({1, 2, 2, 1, 2}, 4), (Ids{1, 2, 4, 0}));
  EXPECT_EQ(chosen({0, -0.0f, 0}, 2), (Ids{0, 1}));
}

TEST(Route, WhatIsNoNumberIsBelowAll) {
  EXPECT_EQ(chosen({kNan, 1, kNan, -5}, 3), (Ids{1, 3, 0}));
  EXPECT_EQ(chosen({kNan, kNan, kNan}, 2), (Ids{0, 1}));
  EXPECT_EQ(chosen({-kInfinity, kNan, kInfinity}, 3), (Ids{2, 0, 1}));
}

TEST(Route, ABiasCountsForTheChoice) {
  const float bias[] = {0, 10, 0, -10};
  EXPECT_EQ(chosen({3, 1, 2, 4}, 2, bias), (Ids{1, 0}));
}

TEST(Route, ColumnsAreListedByExpert) {
  std::vector<std::byte> memory(4096);
  Arena arena(memory);
  Routing routing;
  ASSERT_TRUE(routing.init(arena, 3, 5, 2));
  const Ids choice{4, 1, 1, 0, 4, 1};
  std::ranges::copy(choice, routing.choice.begin());
  for (std::size_t i = 0; i < 6; ++i) routing.weight[i] = static_cast<float>(i);
  for (int again = 0; again < 2; ++again) {
    routing.sort(3, 5, 2);
    const auto columns = [&](std::uint32_t expert) {
      Ids out;
      for (const Pick& pick : routing.of(expert)) out.push_back(pick.column);
      return out;
    };
    EXPECT_EQ(columns(0), Ids{1});
    EXPECT_EQ(columns(1), (Ids{0, 1, 2}));
    EXPECT_EQ(columns(2), Ids{});
    EXPECT_EQ(columns(4), (Ids{0, 2}));
    EXPECT_EQ(routing.of(4)[1].weight, 4);
    EXPECT_EQ(routing.of(0)[0].weight, 3);
  }
}

}  // namespace
}  // namespace qsf
