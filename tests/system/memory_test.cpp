#include "system/memory.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace qsf {
namespace {

constexpr std::size_t kSize = 9u << 20;  // some huge pages, and parts of others

bool all(std::span<const std::byte> bytes, std::byte value) {
  return std::ranges::all_of(bytes, [=](std::byte b) { return b == value; });
}

TEST(Memory, PagesAreZeroUntilTheyAreWritten) {
  const std::span<std::byte> pages = take_pages(kSize);
  ASSERT_EQ(pages.size(), kSize);
  prefer_huge_pages(pages);
  EXPECT_TRUE(all(pages, std::byte{0}));
  std::ranges::fill(pages, std::byte{7});
  EXPECT_TRUE(all(pages, std::byte{7}));
  give_pages(pages);
}

TEST(Memory, WhatIsWrittenCounts) {
  const std::uint64_t before = peak_resident_bytes();
  EXPECT_GT(before, 100'000u);
  const std::span<std::byte> pages = take_pages(8 * kSize);
  prefer_huge_pages(pages);
  std::ranges::fill(pages, std::byte{1});
  const std::uint64_t after = peak_resident_bytes();
  give_pages(pages);
  EXPECT_GE(after, 8 * kSize);
  EXPECT_LE(after, before + 8 * kSize + (1u << 20)) << "no more than the pages themselves";
}

TEST(Memory, MoreThanThereIsIsRefused) { EXPECT_TRUE(take_pages(SIZE_MAX / 2).empty()); }

TEST(Memory, RoomIsTold) { EXPECT_GT(memory_room(), 1u << 20); }

}  // namespace
}  // namespace qsf
