// The fuzzer's corpus, replayed. Files named valid-* must open, all others may or may not.
#include "tests/support/fuzz_corpus.h"

#include <gtest/gtest.h>

#include "tests/fuzz/text_fuzz.h"

namespace qsf::test {
namespace {

TEST(FuzzCorpus, EveryFile) {
  replay_corpus("text", 3,
                [](const std::string& content) { return fuzz_tokenizer(std::as_bytes(std::span(content))); });
}

}  // namespace
}  // namespace qsf::test
