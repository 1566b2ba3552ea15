// The corpus of a fuzzer, replayed by an ordinary test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/paths.h"

namespace qsf::test {

/// Calls `takes(content)` for each file of a folder of tests/fuzz/corpus. It must return true for files named valid-*,
/// of which there must be `least_valid`, and may return either for all others, of which there must be one.
template <class Takes>
void replay_corpus(const std::string& folder, int least_valid, const Takes& takes) {
  int n_valid = 0, n_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() + "/tests/fuzz/corpus/" + folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const bool taken = takes(content);
    ++n_files;
    if (!entry.path().filename().string().starts_with("valid-")) continue;
    EXPECT_TRUE(taken);
    ++n_valid;
  }
  EXPECT_GE(n_valid, least_valid) << folder;
  EXPECT_GT(n_files, n_valid) << folder;
}

}  // namespace qsf::test
