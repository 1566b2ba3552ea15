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
TEST(Programs, NothingIsAllocatedAfterOpening) { expect_success("no_alloc_test"); }
#endif

}  // namespace
}  // namespace qsf::test
