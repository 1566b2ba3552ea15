#include "qsf/base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace qsf {
namespace {

constexpr std::array<std::byte, 8> kBytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                          std::byte{5}, std::byte{6}, std::byte{7}, std::byte{0x88}};

TEST(Bytes, LoadsAreLittleEndianAtAnyAlignment) {
  EXPECT_EQ(load_le<std::uint8_t>(kBytes.data() + 7), 0x88u);
  EXPECT_EQ(load_le<std::uint16_t>(kBytes.data() + 1), 0x0302u);
  EXPECT_EQ(load_le<std::uint32_t>(kBytes.data() + 3), 0x07060504u);
  EXPECT_EQ(load_le<std::uint64_t>(kBytes.data()), 0x8807060504030201u);
}

TEST(Bytes, StoresAreTheInverse) {
  std::array<std::byte, 9> out{};
  store_le(out.data() + 1, std::uint64_t{0x8807060504030201u});
  EXPECT_EQ(out[0], std::byte{0});
  EXPECT_EQ(std::memcmp(out.data() + 1, kBytes.data(), 8), 0);
  store_le(out.data() + 3, 1.0f);
  EXPECT_EQ(load_le<std::uint32_t>(out.data() + 3), 0x3f800000u);
}

TEST(ByteReader, ReadsForward) {
  ByteReader reader(kBytes);
  EXPECT_EQ(reader.read<std::uint16_t>(), 0x0201u);
  EXPECT_EQ(reader.text(2), "\3\4");
  EXPECT_EQ(reader.at(), 4u);
  EXPECT_EQ(reader.left(), 4u);
  EXPECT_EQ(reader.take(0).size(), 0u);
  EXPECT_EQ(reader.read<std::uint32_t>(), 0x88070605u);
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_EQ(reader.take(0).size(), 0u);
  EXPECT_FALSE(reader.bad());
}

TEST(ByteReader, StaysBadAfterTheFirstReadPastTheEnd) {
  ByteReader reader(kBytes);
  reader.take(6);
  EXPECT_EQ(reader.read<std::uint32_t>(), 0u);
  EXPECT_TRUE(reader.bad());
  EXPECT_EQ(reader.read<std::uint8_t>(), 0u) << "bytes were left, but what follows a bad read means nothing";
  EXPECT_EQ(reader.text(1), "");
  EXPECT_TRUE(reader.bad());
  EXPECT_EQ(reader.at(), 6u);
}

TEST(ByteReader, SizesThatWouldWrapAround) {
  for (const std::uint64_t size : {std::uint64_t{8}, std::numeric_limits<std::uint64_t>::max(),
                                   std::numeric_limits<std::uint64_t>::max() - 1, std::uint64_t{1} << 32}) {
    ByteReader reader(kBytes);
    reader.take(1);
    EXPECT_TRUE(reader.take(size).empty());
    EXPECT_TRUE(reader.bad());
  }
}

TEST(ByteReader, Nothing) {
  ByteReader reader({});
  EXPECT_FALSE(reader.bad());
  EXPECT_EQ(reader.read<std::uint8_t>(), 0u);
  EXPECT_TRUE(reader.bad());
}

}  // namespace
}  // namespace qsf
