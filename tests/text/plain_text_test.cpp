// What is taken for a special token in a text with plain parts, such as the messages of a conversation.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

/// A byte-level vocabulary with a control token, a user-defined one, and one of white space.
TokenizerSource marked_source() {
  TokenizerSource source = from_tokenizer_json(source_dir() + "/tests/data/llama/tokenizer.json");
  source.tokens.push_back({"<|end|>", 0, TokenType::control});
  source.tokens.push_back({"<|user|>", 0, TokenType::user_defined});
  source.tokens.push_back({"\n\n", 0, TokenType::user_defined});
  return source;
}

TEST(PlainText, HasNoSpecialTokens) {
  const TokenizerSource source = marked_source();
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  const auto n = static_cast<std::uint32_t>(source.tokens.size());
  const std::uint32_t end = n - 3, user = n - 2, lines = n - 1;
  using Ids = std::vector<std::uint32_t>;
  const auto encode = [&](std::string_view text, std::vector<TextRange> plain) -> Result<Ids> {
    Ids ids(text.size() + 8);
    std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
    const Result<std::uint32_t> count = built.tokenizer.encode(text, true, ids, scratch, plain);
    if (!count) return count.error();
    ids.resize(*count);
    return ids;
  };
  const auto count = [](const Ids& ids, std::uint32_t id) { return std::count(ids.begin(), ids.end(), id); };
  const std::string text = "<|user|>a<|end|><|user|>\n\nb<|end|>";
  EXPECT_EQ(count(*encode(text, {}), end), 2);
  EXPECT_EQ(count(*encode(text, {}), user), 2);
  const Ids ids = *encode(text, {{8, 27}});  // a<|end|><|user|>\n\nb
  EXPECT_EQ(ids.front(), user);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(count(ids, end), 1);
  EXPECT_EQ(count(ids, user), 1) << "a user-defined token that the template means is none in the message";
  EXPECT_EQ(count(ids, lines), 1) << "white space is";
  EXPECT_EQ(count(*encode(text, {{8, 8}, {9, 16}}), end), 1);
  EXPECT_EQ(count(*encode("<|user|>", {{0, 8}}), user), 1) << "one that the template does not mean is, as in any text";
  EXPECT_EQ(count(*encode("<|end|>", {{0, 6}}), end), 0) << "no token begins in plain text";
  EXPECT_EQ(count(*encode("<|end|>", {{6, 7}}), end), 0) << "nor ends there";
  EXPECT_EQ(count(*encode("<|end|>", {{7, 7}}), end), 1);
  for (const std::vector<TextRange>& bad : {std::vector<TextRange>{{0, 9}}, {{3, 2}}, {{2, 4}, {3, 5}}}) {
    EXPECT_EQ(error_of(encode("<|end|>", bad)).code, ErrorCode::bad_argument);
  }
  // Between special tokens, the template's text and the message are one text to the tokenizer.
  EXPECT_EQ(*encode("on<|end|>ce upon", {{1, 2}, {9, 11}}), *encode("on<|end|>ce upon", {}));
}

}  // namespace
}  // namespace qsf::test
