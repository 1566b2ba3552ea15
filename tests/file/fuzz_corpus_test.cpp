// The fuzzer's corpus, replayed. Files named valid-* must open, all others may or may not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/file_fuzz.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  int n_files = 0, n_valid = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/fuzz/corpus/file")) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    const std::vector<char> exact(content.begin(), content.end());
    const auto bytes = std::as_bytes(std::span(exact));
    fuzz_file(bytes);
    ++n_files;
    if (!entry.path().filename().string().starts_with("valid-")) continue;
    const Result<OpenFile> opened = open_file(bytes);
    EXPECT_TRUE(opened) << opened.error().sentence;
    ++n_valid;
  }
  EXPECT_GE(n_files, 10);
  EXPECT_GE(n_valid, 3);
}

}  // namespace
}  // namespace qsf::test
