// Tests that are programs of their own: C, and a malloc of its own.
#include <gtest/gtest.h>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

void expect_success(const std::string& name) {
  const Ran ran = run({program(name), stories("8bit", "lz4")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

TEST(Programs, CApiOfTheSharedLibrary) { expect_success("c_api_shared_test"); }
TEST(Programs, CApiOfTheStaticLibrary) { expect_success("c_api_static_test"); }

TEST(Programs, CApiOfConversations) {
  const TempDir dir;
  const Ran ran = run({program("c_api_chat_test"), chat_model(dir, kChatMl), stories("8bit")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

#ifdef QSF_COUNTS_ALLOCATIONS  // where a program can have a malloc of its own
TEST(Programs, NothingIsAllocatedAfterOpening) {
  const TempDir dir;
  const std::string experts = dir / "experts.qsf";
  const Ran made = run(
      {program("qsf-convert"), std::string(QSF_SOURCE_DIR) + "/tests/data/qwen3-moe", experts, "--quant-type", "f16"});
  ASSERT_EQ(made.code, 0) << made.err;
  // In MiB, the first of which is too little for all weights.
  for (const auto& [model, least] : {std::pair(stories("8bit", "lz4"), "4"), std::pair(experts, "3")}) {
    const Ran ran = run({program("no_alloc_test"), model, least, "32"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  }
}
#endif

}  // namespace
}  // namespace qsf::test
