#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "qsf/engine.h"
#include "tests/support/error_of.h"

namespace qsf {
namespace {

constexpr std::array kBoth{Batch::one, Batch::many};

TEST(TryProduct, GoesThroughWhatFits) {
  std::vector<std::byte> all(5u << 20);
  for (const Format& format : kFormats) {
    for (const Batch batch : kBoth) {
      // Many columns take scalar code long.
      const std::span<std::byte> memory = std::span(all).first(batch == Batch::one ? all.size() : 1u << 20);
      const Result<std::uint64_t> bytes = try_product(memory, format.id, batch, "", {});
      ASSERT_TRUE(bytes) << format.name << bytes.error().sentence;
      EXPECT_GT(*bytes, batch == Batch::one ? 3u << 20 : 1u << 18) << format.name;
      EXPECT_LE(*bytes, memory.size()) << format.name;
      EXPECT_EQ(*try_product(memory, format.id, batch, "scalar", {}), *bytes) << format.name;
    }
  }
}

// What would fill them would be measured with the product.
TEST(TryProduct, ComputesWithWhatLiesThere) {
  std::vector<std::byte> memory(3u << 20, std::byte{0x11});
  for (const Batch batch : kBoth) ASSERT_TRUE(try_product(memory, kFormats[0].id, batch, "", {}));
  EXPECT_EQ(std::ranges::count(std::span(memory).last(2u << 20), std::byte{0x11}), 2 << 20);
}

TEST(TryProduct, RefusesWhatIsNotThere) {
  std::vector<std::byte> memory(5u << 20);
  const Batch unknown = static_cast<Batch>(kBatchNames.size());
  EXPECT_EQ(error_of(try_product(memory, kFormats[0].id, unknown, "", {})).code, ErrorCode::bad_argument);
  for (const Batch batch : kBoth) {
    EXPECT_EQ(error_of(try_product(memory, kFormats[0].id, batch, "abacus", {})).code, ErrorCode::bad_argument);
    EXPECT_EQ(error_of(try_product(memory, static_cast<FormatId>(250), batch, "", {})).code, ErrorCode::bad_argument);
    for (const std::size_t small : {0u, 100u, 10'000u}) {
      const Result<std::uint64_t> bytes = try_product(std::span(memory).first(small), kFormats[0].id, batch, "", {});
      EXPECT_EQ(error_of(bytes).code, ErrorCode::out_of_memory) << small;
    }
  }
}

}  // namespace
}  // namespace qsf
