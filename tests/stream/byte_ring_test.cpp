// Room for segments of different sizes: nothing overlaps, and what is free is found.
#include "stream/byte_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <vector>

namespace qsf {
namespace {

class Rings : public ::testing::Test {
 protected:
  ByteRing make(std::uint64_t bytes, std::uint32_t places) {
    ByteRing ring;
    EXPECT_TRUE(ring.init(arena_, bytes, places));
    return ring;
  }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 18);
  Arena arena_{memory_};
};

TEST_F(Rings, PlacesFollowEachOtherRoundAndRound) {
  ByteRing ring = make(100, 8);
  const auto a = ring.take(40), b = ring.take(50);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(ring.begin(*a), 0u);
  EXPECT_EQ(ring.begin(*b), 40u);
  EXPECT_FALSE(ring.take(20));
  ring.give_back(*a);
  EXPECT_FALSE(ring.take(41));
  const auto c = ring.take(30);  // 10 at the end are too few
  ASSERT_TRUE(c);
  EXPECT_EQ(ring.begin(*c), 0u);
  const auto d = ring.take(10);
  ASSERT_TRUE(d);
  EXPECT_EQ(ring.begin(*d), 30u);
  const auto e = ring.take(10);
  ASSERT_TRUE(e);
  EXPECT_EQ(ring.begin(*e), 90u);
  EXPECT_FALSE(ring.take(1));
}

TEST_F(Rings, NoMoreThanThereArePlacesAndBytes) {
  ByteRing ring = make(100, 2);
  EXPECT_FALSE(ring.take(101));
  const auto whole = ring.take(100);
  ASSERT_TRUE(whole);
  ring.give_back(*whole);
  EXPECT_TRUE(ring.take(1));
  EXPECT_TRUE(ring.take(1));
  EXPECT_FALSE(ring.take(1));
  EXPECT_FALSE(make(100, 0).take(1));
  EXPECT_FALSE(make(0, 1).take(1));
}

/// As many as fit side by side, however often the ring went round.
TEST_F(Rings, WhatIsGivenBackInOrderLeavesNoGaps) {
  for (const std::uint64_t bytes : {1u, 64u, 90u, 499u, 501u, 1000u}) {
    ByteRing ring = make(1000, 1000);
    std::deque<std::uint32_t> taken;
    for (int i = 0; i < 3000; ++i) {
      while (const auto place = ring.take(bytes)) taken.push_back(*place);
      ASSERT_EQ(taken.size(), 1000 / bytes);
      ring.give_back(taken.front());
      taken.pop_front();
    }
  }
}

/// In any order: against a map of every byte.
TEST_F(Rings, NothingOverlapsAndEveryGapIsFound) {
  constexpr std::uint64_t kBytes = 64;
  std::mt19937 random(2);
  ByteRing ring = make(kBytes, 16);
  std::vector<bool> used(kBytes);
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> taken;
  std::size_t refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 && !taken.empty()) {
      const auto one = std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
      for (std::uint64_t b = one->second.first; b < one->second.second; ++b) used[b] = false;
      ring.give_back(one->first);
      taken.erase(one);
      continue;
    }
    const std::uint64_t bytes = 1 + random() % 12;
    std::uint64_t widest = 0, run = 0;
    for (const bool is_used : used) widest = std::max(widest, run = is_used ? 0 : run + 1);
    const auto place = ring.take(bytes);
    ASSERT_EQ(place.has_value(), widest >= bytes && taken.size() < 16);
    refused += place ? 0 : 1;
    if (!place) continue;
    ASSERT_FALSE(taken.contains(*place));
    const std::uint64_t begin = ring.begin(*place);
    ASSERT_LE(begin + bytes, kBytes);
    for (std::uint64_t b = begin; b < begin + bytes; ++b) {
      ASSERT_FALSE(used[b]);
      used[b] = true;
    }
    taken[*place] = {begin, begin + bytes};
  }
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace qsf
