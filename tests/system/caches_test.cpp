#include "system/caches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace qsf {
namespace {

TEST(Caches, DroppedBytesStay) {
  std::vector<std::byte> bytes(100'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::vector<std::byte> before = bytes;
  for (const std::size_t from : {0u, 1u, 63u, 64u, 100'003u}) drop_cached(std::span(bytes).subspan(from));
  EXPECT_TRUE(std::ranges::equal(bytes, before));
}

}  // namespace
}  // namespace qsf
