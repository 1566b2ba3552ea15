#include "system/past_cache.h"

#include <gtest/gtest.h>

#include <vector>

#include "native/temp.h"
#include "system/file.h"
#include "system/memory.h"

namespace qsf {
namespace {

// Whole blocks into aligned memory; where the system refuses that, it says so by no descriptor.
TEST(PastCache, GivesTheSameBytes) {
  const test::TempDir dir;
  const std::vector<std::byte> content = test::some_bytes(100'000);
  test::write_bytes(dir / "file", content);
  const int file = sys::open_file(dir / "file");
  ASSERT_GE(file, 0);
  const DirectFile direct = reopen_direct(file);
#ifdef _WIN32
  EXPECT_GE(direct.fd, 0);
#endif
  if (direct.fd >= 0) {
    ASSERT_GT(direct.block, 0u);
    const std::span<std::byte> memory = take_pages(4 * std::size_t{direct.block});
    ASSERT_FALSE(memory.empty());
    for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{5} * direct.block}) {
      ASSERT_EQ(sys::read_at(direct.fd, at, memory), static_cast<std::ptrdiff_t>(memory.size()));
      EXPECT_TRUE(std::equal(memory.begin(), memory.end(), content.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    const std::uint64_t last = content.size() / direct.block * direct.block;
    EXPECT_EQ(sys::read_at(direct.fd, last, memory), static_cast<std::ptrdiff_t>(content.size() - last)) << "the end";
    give_pages(memory);
    EXPECT_TRUE(sys::close_file(direct.fd));
  }
  EXPECT_TRUE(sys::close_file(file));
}

}  // namespace
}  // namespace qsf
