#include "base/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

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
  const auto a = arena.take<char>(1, "a");
  const auto b = arena.take<double>(3, "b");
  const auto c = arena.take<std::uint32_t>(17, "c");
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
  const auto a = arena.take<char>(arena.size(), "all");
  ASSERT_TRUE(a);
  EXPECT_TRUE(aligned(a->data()));
  EXPECT_EQ(a->data() + a->size(), reinterpret_cast<char*>(aligned_.data() + 1024));
}

TEST_F(ArenaTest, TheLastByteCanBeTakenAndNoMore) {
  Arena arena(aligned_);
  ASSERT_TRUE(arena.take<char>(1024 - 64, "most"));
  ASSERT_TRUE(arena.take<char>(64, "rest"));
  EXPECT_EQ(arena.used(), arena.size());
  const auto more = arena.take<char>(1, "more");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(std::string(more.error().sentence).find("'more'"), std::string::npos);
  EXPECT_TRUE(arena.take<char>(0, "nothing"));
}

TEST_F(ArenaTest, RefusalsChangeNothing) {
  Arena arena(aligned_);
  ASSERT_FALSE(arena.take<char>(1025, "too much"));
  EXPECT_EQ(arena.used(), 0u);
  EXPECT_TRUE(arena.regions().empty());
  EXPECT_EQ(aligned_[0], std::byte{0xcd});
  EXPECT_TRUE(arena.take<char>(1024, "fits"));
}

TEST_F(ArenaTest, CountsThatWrapAround) {
  Arena arena(aligned_);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count : {most, most - 63, most / 8, most / 8 + 1, most / 8 + 2}) {
    EXPECT_FALSE(arena.take<std::uint64_t>(count, "huge")) << count;
  }
  EXPECT_EQ(arena.used(), 0u);
}

TEST_F(ArenaTest, ARoundedSizeMustFitToo) {
  Arena arena(aligned_.first(1000));  // 1000 bytes hold 15 pieces of 64, not a 16th
  ASSERT_TRUE(arena.take<char>(15 * 64, "a"));
  EXPECT_FALSE(arena.take<char>(40, "b"));
}

TEST_F(ArenaTest, PiecesOfOneNameAreOneRegion) {
  Arena arena(aligned_);
  ASSERT_TRUE(arena.take<char>(10, "kv"));
  ASSERT_TRUE(arena.take<char>(10, "scratch"));
  ASSERT_TRUE(arena.take<char>(100, std::string("kv").c_str()));  // by its letters, not its address
  ASSERT_EQ(arena.regions().size(), 2u);
  EXPECT_STREQ(arena.regions()[0].name, "kv");
  EXPECT_EQ(arena.regions()[0].size, 64u + 128u);
  EXPECT_EQ(arena.regions()[1].size, 64u);
}

TEST(Arena, WithoutMemory) {
  Arena none;
  EXPECT_EQ(none.size(), 0u);
  EXPECT_FALSE(none.take<char>(1, "a"));
  std::byte few[3];
  Arena small{std::span(few)};
  EXPECT_EQ(small.used(), 0u);
  EXPECT_FALSE(small.take<char>(1, "a"));
}

TEST(AlignUp, RoundsUp) {
  EXPECT_EQ(align_up(0), 0u);
  EXPECT_EQ(align_up(1), 64u);
  EXPECT_EQ(align_up(64), 64u);
  EXPECT_EQ(align_up(65, 8), 72u);
}

}  // namespace
}  // namespace qsf
