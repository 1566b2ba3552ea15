// The fuzzer's corpus, replayed. Answers of files named valid-* have calls, all others may or may not.
#include "tests/support/fuzz_corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/answers_fuzz.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  replay_corpus("answers", 7, [](const std::string& content) { return fuzz_answers(content); });
}

}  // namespace
}  // namespace qsf::test
