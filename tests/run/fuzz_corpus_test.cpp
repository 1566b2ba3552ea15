#include "tests/support/fuzz_corpus.h"

#include "tests/fuzz/run_fuzz.h"

namespace qsf::test {
namespace {

TEST(SavedFuzz, TheCorpusIsTakenOrRefused) {
  replay_corpus("run", 3, [](const std::string& content) { return fuzz_saved(std::as_bytes(std::span(content))); });
}

}  // namespace
}  // namespace qsf::test
