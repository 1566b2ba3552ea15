// The fuzzer's corpus, replayed. Files named valid-* must render, all others may or may not.
#include "tests/support/fuzz_corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/templates_fuzz.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  replay_corpus("templates", 3, [](const std::string& content) { return fuzz_template(content); });
}

}  // namespace
}  // namespace qsf::test
