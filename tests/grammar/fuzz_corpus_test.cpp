// The fuzzer's corpus, replayed. Texts of files named valid-* are texts of their grammars, all others may or may not
// be.
#include "tests/support/fuzz_corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/grammar_fuzz.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  replay_corpus("grammar", 6, [](const std::string& content) { return fuzz_grammar(content); });
}

}  // namespace
}  // namespace qsf::test
