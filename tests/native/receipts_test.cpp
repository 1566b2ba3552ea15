// Receipts that qsf-parity reads. The corpus of their fuzzer is replayed; what a comparison says is in parity_test.cpp.
#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/receipts_fuzz.h"
#include "tests/support/error_of.h"
#include "tests/support/fuzz_corpus.h"

namespace qsf::test {
namespace {

TEST(Receipts, FuzzCorpus) { replay_corpus("receipts", 2, fuzz_receipts); }

/// Lists in lists would be compared and copied call by call, as deep as the stack allows.
TEST(Receipts, WithDeepListsAreRefused) {
  for (const std::size_t depth : {100u, 1'000'000u}) {
    const std::string text = R"({"program":1,"generated_tokens":[],"logits_hash":)" + std::string(depth, '[') +
                             std::string(depth, ']') + "}";
    const auto read = run::read_receipt(text, "the file");
    EXPECT_EQ(error_of(read).code, ErrorCode::bad_input) << depth;
    EXPECT_STREQ(error_of(read).sentence, "the file is no receipt of qsf-run");
  }
}

}  // namespace
}  // namespace qsf::test
