// The division of a budget, and the sentence of its refusal.
#include "qsf/base/budget.h"

#include <gtest/gtest.h>

namespace qsf {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(Budget, LeavesTheArenaWithoutTheBytesOfTheHost) {
  constexpr Budget budget = Budget::within(64 * kMiB, kMiB);
  EXPECT_EQ(budget.bytes(), 64 * kMiB);
  EXPECT_EQ(budget.arena(), 63 * kMiB);
  EXPECT_EQ(budget.outside(), kMiB);
  for (const std::uint64_t bytes : {std::uint64_t{0}, kMiB - 1, kMiB}) {
    EXPECT_EQ(Budget::within(bytes, kMiB).arena(), 0u);
    EXPECT_EQ(Budget::within(bytes, kMiB).bytes(), bytes);
  }
}

TEST(Budget, RefusesWithANumberThatIsEnough) {
  const Error refused = Budget(3 * kMiB, kMiB).refusal("this model", 5 * kMiB + 1, " for its tables");
  EXPECT_EQ(refused.code, ErrorCode::budget_too_small);
  EXPECT_STREQ(refused.sentence, "this model needs at least 5.01 MiB for its tables, and the budget is 4.00 MiB");
}

}  // namespace
}  // namespace qsf
