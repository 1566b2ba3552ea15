// Tests that are programs of their own: C, and a malloc of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "native/chat_model.h"
#include "native/letters.h"
#include "tests/support/paths.h"

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

TEST(Programs, CApiOfHeldAnswers) {
  const TempDir dir;
  const Ran ran = run({program("c_api_held_test"), chat_model(dir, kChatMl), stories("8bit")});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
}

/// Every function that the header declares, with NULL and from inside the callback.
TEST(Programs, CApiOfWrongCalls) {
  const TempDir dir;
  SmallOptions options;
  options.tokenizer = letters(false);
  const SmallFile hostile = small_file(options, [](SmallFile& file) {
    for (auto& [of, weights] : file.weights) {
      if (of.second == Role::final_norm) std::ranges::fill(weights, 3e38f);
    }
  });
  write_bytes(dir / "hostile.qsf", hostile.bytes);
  const Ran ran = run({program("c_api_calls_test"), chat_model(dir, kChatMl), dir / "hostile.qsf"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  const std::string header = read_text(source_dir() + "/include/qsf.h");
  std::set<std::string> declared, swept;
  std::istringstream lines(header);
  for (std::string line; std::getline(lines, line);) {
    // A declaration begins at the line's beginning, where comments have a star or a space.
    const std::size_t at = line.find("qsf_"), end = line.find('(', at);
    if (line.empty() || std::isalpha(static_cast<unsigned char>(line[0])) == 0 || at == line.npos) continue;
    if (end != line.npos && line.find(' ') < at) declared.insert(line.substr(at, end - at));
  }
  std::istringstream names(ran.out);
  for (std::string name; names >> name;) swept.insert(name);  // its lines end as the system's do
  EXPECT_GT(declared.size(), 25u);
  EXPECT_EQ(swept, declared);
}

#ifdef QSF_COUNTS_ALLOCATIONS  // where a program can have a malloc of its own
TEST(Programs, NothingIsAllocatedAfterOpening) {
  const TempDir dir;
  const std::string experts = dir / "experts.qsf";
  const Ran made =
      run({program("qsf-convert"), source_dir() + "/tests/data/qwen3-moe", experts, "--quant-type", "f16"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string gguf = dir / "q4_0.gguf";
  const Ran written = run({program("qsf-convert"), source_dir() + "/models/stories", gguf, "--quant-type", "q4_0"});
  ASSERT_EQ(written.code, 0) << written.err;
  // In MiB, the first of which is too little for all weights.
  for (const auto& [model, least] :
       {std::pair(stories("8bit", "lz4"), "4"), std::pair(experts, "3"), std::pair(gguf, "5")}) {
    const Ran ran = run({program("no_alloc_test"), model, least, "32"});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  }
}
#endif

}  // namespace
}  // namespace qsf::test
