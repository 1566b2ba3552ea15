#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "qsf/engine.h"

namespace qsf {
namespace {

TEST(TryProduct, GoesThroughWhatFits) {
  std::vector<std::byte> memory(5u << 20);
  for (const Format& format : kFormats) {
    const Result<std::uint64_t> bytes = try_product(memory, format.id, "", {});
    ASSERT_TRUE(bytes) << format.name << bytes.error().sentence;
    EXPECT_GT(*bytes, 3u << 20) << format.name;
    EXPECT_LE(*bytes, memory.size()) << format.name;
    EXPECT_EQ(*try_product(memory, format.id, "scalar", {}), *bytes) << format.name;
  }
}

// What would fill them would be measured with the product.
TEST(TryProduct, ComputesWithWhatLiesThere) {
  std::vector<std::byte> memory(3u << 20, std::byte{0x11});
  ASSERT_TRUE(try_product(memory, kFormats[0].id, "", {}));
  EXPECT_EQ(std::ranges::count(std::span(memory).last(2u << 20), std::byte{0x11}), 2 << 20);
}

TEST(TryProduct, RefusesWhatIsNotThere) {
  std::vector<std::byte> memory(5u << 20);
  EXPECT_EQ(try_product(memory, kFormats[0].id, "abacus", {}).error().code, ErrorCode::bad_argument);
  EXPECT_EQ(try_product(memory, static_cast<FormatId>(250), "", {}).error().code, ErrorCode::bad_argument);
  for (const std::size_t small : {0u, 100u, 10'000u}) {
    const Result<std::uint64_t> bytes = try_product(std::span(memory).first(small), kFormats[0].id, "", {});
    EXPECT_EQ(bytes.error().code, ErrorCode::out_of_memory) << small;
  }
}

}  // namespace
}  // namespace qsf
