#include "system/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

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

TEST(Memory, ReleasedPagesTakeNone) {
  const std::span<std::byte> pages = take_pages(kSize);
  std::ranges::fill(pages, std::byte{7});
  release_pages(pages.subspan(1, kSize - 2));
  EXPECT_EQ(pages.front(), std::byte{7});
  EXPECT_EQ(pages.back(), std::byte{7});
#ifdef __linux__
  EXPECT_TRUE(all(pages.subspan(1 << 16, kSize - (2 << 16)), std::byte{0}));
#endif
  release_pages(pages.subspan(100, 50));  // no whole page
  release_pages({});
  EXPECT_EQ(pages.front(), std::byte{7});
  give_pages(pages);
}

TEST(Memory, PressureIsReadFromItsLine) {
  const std::string some = "some avg10=99.00 avg60=0.00 avg300=0.00 total=12\n";
  const auto full = [&](const std::string& number) { return read_pressure(some + "full avg10=" + number + "\n"); };
  EXPECT_EQ(full("0.00 avg60=1.00 avg300=0.00 total=0"), 0.0);
  EXPECT_NEAR(full("12.34 avg60=1.00").value_or(-1), 12.34, 1e-9);
  EXPECT_EQ(full("100.00"), 100.0);
  EXPECT_EQ(full("7"), 7.0);
  for (const char* number : {"", " ", "-1.00", "+1", "100.01", "101", "1e2", "nan", "inf", "0x1", "1.2.3", ".5", "1,5",
                             "1.00\t", "99999999999999999999", "0.0000000000000001"}) {
    EXPECT_EQ(full(number), std::nullopt) << number;
  }
  EXPECT_EQ(full(std::string("1\0.5", 4)), std::nullopt);
  EXPECT_EQ(read_pressure(""), std::nullopt);
  EXPECT_EQ(read_pressure(some), std::nullopt);
  EXPECT_EQ(read_pressure("full avg10=1.00"), std::nullopt) << "cut";
  EXPECT_EQ(read_pressure("x full avg10=1.00\n"), std::nullopt);
  EXPECT_EQ(read_pressure("\n\nfull avg10=1.50\n"), 1.5);
  EXPECT_EQ(read_pressure(std::string(500, 'x')), std::nullopt);
}

TEST(Memory, RoomIsTold) { EXPECT_GT(memory_room(), 1u << 20); }

}  // namespace
}  // namespace qsf
