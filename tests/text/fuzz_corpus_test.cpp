// The fuzzer's corpus, replayed. Files named valid-* must open, all others may or may not.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fuzz/text_fuzz.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  int n_valid = 0, n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(QSF_SOURCE_DIR "/tests/fuzz/corpus/text")) {
    SCOPED_TRACE(entry.path().string());
    const std::string content = read_file(entry.path().string());
    const bool opened = fuzz_tokenizer(std::as_bytes(std::span(content)));
    ++n_files;
    if (!entry.path().filename().string().starts_with("valid-")) continue;
    EXPECT_TRUE(opened);
    ++n_valid;
  }
  EXPECT_GE(n_valid, 3);
  EXPECT_GT(n_files, n_valid);
}

}  // namespace
}  // namespace qsf::test
