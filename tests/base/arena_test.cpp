#include "base/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace qsf {
namespace {

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0; }

class ArenaTest : public ::testing::Test {
 protected:
  // 1024 usable bytes whatever the vector's alignment, filled so that zeroing shows.
  std::vector<std::byte> memory_ = std::vector<std::byte>(1024 + kAlignment, std::byte{0xcd});
  std::span<std::byte> aligned_ = [this] {
    std::byte* begin = memory_.data();
    while (!aligned(begin)) ++begin;
    return std::span(begin, 1024);
  }();
};

TEST_F(ArenaTest, PiecesAreAlignedZeroedAndApart) {
  Arena arena(aligned_);
  EXPECT_EQ(arena.size(), 1024u);
  const auto a = arena.take<char>(1, Region::tables);
  const auto b = arena.take<double>(3, Region::tables);
  const auto c = arena.take<std::uint32_t>(17, Region::tables);
  ASSERT_TRUE(a && b && c);
  EXPECT_TRUE(aligned(a->data()) && aligned(b->data()) && aligned(c->data()));
  EXPECT_EQ(b->size(), 3u);
  EXPECT_EQ(reinterpret_cast<std::byte*>(b->data()) - reinterpret_cast<std::byte*>(a->data()), 64);
  EXPECT_EQ(reinterpret_cast<std::byte*>(c->data()) - reinterpret_cast<std::byte*>(b->data()), 64);
  EXPECT_TRUE(std::ranges::all_of(*b, [](double x) { return x == 0; }));
  EXPECT_EQ(arena.used(), 64u + 64u + 128u);
}

TEST_F(ArenaTest, StartsAtAnAlignedAddress) {
  Arena arena(aligned_.subspan(1));
  EXPECT_EQ(arena.size(), 1023u - 63u);
  const auto a = arena.take<char>(arena.size(), Region::tables);
  ASSERT_TRUE(a);
  EXPECT_TRUE(aligned(a->data()));
  EXPECT_EQ(a->data() + a->size(), reinterpret_cast<char*>(aligned_.data() + 1024));
}

TEST_F(ArenaTest, TheLastByteCanBeTakenAndNoMore) {
  Arena arena(aligned_);
  ASSERT_TRUE(arena.take<char>(1024 - 64, Region::tables));
  ASSERT_TRUE(arena.take<char>(64, Region::tables));
  EXPECT_EQ(arena.used(), arena.size());
  const auto more = arena.take<char>(1, Region::tables);
  ASSERT_FALSE(more);
  EXPECT_EQ(error_of(more).code, ErrorCode::out_of_memory);
  EXPECT_NE(std::string(error_of(more).sentence).find("'tables'"), std::string::npos);
  EXPECT_TRUE(arena.take<char>(0, Region::tables));
}

TEST_F(ArenaTest, RefusalsChangeNothing) {
  Arena arena(aligned_);
  ASSERT_FALSE(arena.take<char>(1025, Region::tables));
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_EQ(arena.used(Region::tables), 0u);
  EXPECT_EQ(aligned_[0], std::byte{0xcd});
  EXPECT_TRUE(arena.take<char>(1024, Region::tables));
}

TEST_F(ArenaTest, CountsThatWrapAround) {
  Arena arena(aligned_);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count : {most, most - 63, most / 8, most / 8 + 1, most / 8 + 2}) {
    EXPECT_FALSE(arena.take<std::uint64_t>(count, Region::tables)) << count;
  }
  EXPECT_EQ(arena.used(), 0u);
}

TEST_F(ArenaTest, ARoundedSizeMustFitToo) {
  Arena arena(aligned_.first(1000));  // 1000 bytes hold 15 pieces of 64, not a 16th
  ASSERT_TRUE(arena.take<char>(15 * 64, Region::tables));
  EXPECT_FALSE(arena.take<char>(40, Region::tables));
}

TEST_F(ArenaTest, BeginsTheLivesOfWhatIsNotTrivial) {
  struct Place {
    std::atomic<int> state{7};
    std::uint32_t slot = ~0u;
  };
  Arena arena(aligned_);
  const auto places = arena.take<Place>(5, Region::tables);
  ASSERT_TRUE(places);
  for (const Place& place : *places) {
    EXPECT_EQ(place.state.load(), 7);
    EXPECT_EQ(place.slot, ~0u);
  }
}

TEST_F(ArenaTest, CountsWhatPiecesAreFor) {
  Arena arena(aligned_);
  ASSERT_TRUE(arena.take<char>(10, Region::kv_cache));
  ASSERT_TRUE(arena.take<char>(10, Region::logits));
  ASSERT_TRUE(arena.take<char>(100, Region::kv_cache));
  EXPECT_EQ(arena.used(Region::kv_cache), 64u + 128u);
  EXPECT_EQ(arena.used(Region::logits), 64u);
  EXPECT_EQ(arena.used(Region::ring), 0u);
}

TEST_F(ArenaTest, ADryOneCountsOnFromAnotherAndTouchesNothing) {
  Arena arena(aligned_);
  ASSERT_TRUE(arena.take<char>(100, Region::tables));
  Arena dry = Arena::dry(arena);
  const auto huge = dry.take<std::uint64_t>(std::uint64_t{1} << 40, Region::kv_cache);
  ASSERT_TRUE(huge);
  EXPECT_TRUE(huge->empty());
  EXPECT_EQ(dry.used(), 128u + (std::uint64_t{8} << 40));
  EXPECT_EQ(dry.used(Region::kv_cache), std::uint64_t{8} << 40);
  EXPECT_EQ(arena.used(), 128u);
  EXPECT_EQ(aligned_[128], std::byte{0xcd});
}

TEST(Arena, WithoutMemory) {
  Arena none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_FALSE(none.take<char>(1, Region::tables));
  std::byte few[3];
  Arena small{std::span(few)};
  EXPECT_EQ(small.used(), 0u);
  EXPECT_FALSE(small.take<char>(1, Region::tables));
}

struct Pointed {
  static constexpr std::size_t kArenaBytes = 192;
  std::byte* to = nullptr;
};

TEST(Arena, WhatHoldsPointersIsChargedAsItSays) {
  alignas(64) std::array<std::byte, 512> memory{};
  Arena arena(memory);
  ASSERT_TRUE(arena.take<Pointed>(2, Region::tables));
  EXPECT_EQ(arena.used(), 384u);
}

TEST(AlignUp, RoundsUp) {
  EXPECT_EQ(align_up(0), 0u);
  EXPECT_EQ(align_up(1), 64u);
  EXPECT_EQ(align_up(64), 64u);
  EXPECT_EQ(align_up(65, 8), 72u);
}

}  // namespace
}  // namespace qsf
