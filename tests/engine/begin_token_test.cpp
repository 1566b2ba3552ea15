// The begin token that a model expects before a text: added once, whether the text has it or not.
#include <string>

#include "engine/host.h"
#include "engine/variants.h"
#include "qsf/text/tokenizer_builder.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Tokens: 0 unknown, 1 begin, 2 "a", 3 a space, 4 "b", 5 user-defined "<u>".
SmallFile file_with_begin_token(bool add_bos, std::uint8_t attributes = 0) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.add_bos = add_bos;
  source.tokens = {
      {"<unk>", 0, TokenType::unknown},   {"<s>", 0, TokenType::control, attributes}, {"a"}, {"\u2581"}, {"b"},
      {"<u>", 0, TokenType::user_defined}};
  for (const char* letter : {"<", "s", ">"}) source.tokens.push_back({letter});
  while (source.tokens.size() < 40) source.tokens.push_back({"", 0, TokenType::unused});
  SmallOptions small;
  small.tokenizer = *build_tokenizer(source);
  return small_file(small);
}

Ids ids_of_prompt(Host& host, const std::string& text, bool add_bos, bool special) {
  EXPECT_TRUE(host.session->rewind(0));
  Prompt prompt = greedy({}, 0);
  prompt.text = text;
  prompt.add_bos = add_bos;
  prompt.special = special;
  const Status started = host.session->start(prompt);
  EXPECT_TRUE(started) << error_of(started).sentence;
  host.pump();
  const std::span<const std::uint32_t> ids = host.session->tokens();
  return {ids.begin(), ids.end()};
}

TEST(BeginToken, IsNotAddedToATextThatBeginsWithIt) {
  const SmallFile file = file_with_begin_token(true);
  Host host(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(host.session->begin_token(), std::optional<std::uint32_t>(1));
  struct Case {
    const char* text;
    Ids with, without;  // with and without add_bos
  };
  for (const Case& each : {Case{"ab", {1, 2, 4}, {2, 4}}, Case{"<s>ab", {1, 2, 4}, {1, 2, 4}}, Case{"<s>", {1}, {1}},
                           Case{"<s><s>a", {1, 1, 2}, {1, 1, 2}}, Case{"a<s>b", {1, 2, 1, 4}, {2, 1, 4}},
                           Case{"<u><s>a", {1, 5, 1, 2}, {5, 1, 2}}, Case{" <s>a", {1, 3, 1, 2}, {3, 1, 2}}}) {
    EXPECT_EQ(ids_of_prompt(host, each.text, true, true), each.with) << each.text;
    EXPECT_EQ(ids_of_prompt(host, each.text, false, true), each.without) << each.text;
    std::array<std::uint32_t, 16> ids{};
    const Result<std::uint32_t> n = host.session->tokenize(each.text, true, ids, {}, true);
    ASSERT_TRUE(n) << n.error().sentence;
    EXPECT_EQ(Ids(ids.begin(), ids.begin() + *n), each.with) << each.text;
  }
  EXPECT_EQ(ids_of_prompt(host, "<s>a", true, false), (Ids{1, 6, 7, 8, 2})) << "as plain text";
  EXPECT_EQ(ids_of_prompt(host, "a", true, true), (Ids{1, 2}));
}

TEST(BeginToken, NeedsRoomOnce) {
  const SmallFile file = file_with_begin_token(true);
  Host host(file.bytes, 8 * kMiB, {});
  std::array<std::uint32_t, 3> ids{};
  for (const char* text : {"<s>ab", "ab"}) {
    const Result<std::uint32_t> n = host.session->tokenize(text, true, ids, {}, true);
    ASSERT_TRUE(n) << n.error().sentence;
    EXPECT_EQ(*n, 3u) << text;
  }
  const Error full = error_of(host.session->tokenize("aba", true, ids, {}, true));
  EXPECT_EQ(full.code, ErrorCode::context_full);
  EXPECT_STREQ(full.sentence, "the text has 3 tokens, and there is room for 2");
}

TEST(BeginToken, IsNotAddedIfTheModelDoesNotExpectIt) {
  const SmallFile file = file_with_begin_token(false);
  Host host(file.bytes, 8 * kMiB, {});
  EXPECT_EQ(ids_of_prompt(host, "<s>a", true, true), (Ids{1, 2}));
  EXPECT_EQ(ids_of_prompt(host, "a", true, true), (Ids{2}));
}

/// White space that the token takes on its left is no text before it.
TEST(BeginToken, MayTakeWhiteSpaceBeforeIt) {
  const SmallFile file = file_with_begin_token(true, static_cast<std::uint8_t>(TokenAttribute::lstrip));
  Host host(file.bytes, 8 * kMiB, {});
  EXPECT_EQ(ids_of_prompt(host, " \n<s>a", true, true), (Ids{1, 2}));
}

/// The end token that a model expects after a text is added once too.
TEST(BeginToken, AndTheEndTokenIsNotAddedToATextThatEndsWithIt) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.add_bos = source.add_eos = true;
  source.tokens = {{"<unk>", 0, TokenType::unknown}, {"<s>", 0, TokenType::control}, {"</s>", 0, TokenType::control}};
  for (const char* letter : {"a", "b", "<", "/", "s", ">"}) source.tokens.push_back({letter});
  while (source.tokens.size() < 40) source.tokens.push_back({"", 0, TokenType::unused});
  SmallOptions small;
  small.tokenizer = *build_tokenizer(source);
  const SmallFile file = small_file(small);
  Host host(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(host.session->closing_token({}), std::optional<std::uint32_t>(2));
  const std::pair<const char*, Ids> cases[] = {
      {"ab", {1, 3, 4, 2}},        {"ab</s>", {1, 3, 4, 2}},    {"<s>", {1, 2}},
      {"a</s>b", {1, 3, 2, 4, 2}}, {"a</s></s>", {1, 3, 2, 2}}, {"</s>", {1, 2}}};
  for (const auto& [text, with] : cases) EXPECT_EQ(ids_of_prompt(host, text, true, true), with) << text;
  EXPECT_EQ(ids_of_prompt(host, "ab", false, true), (Ids{3, 4}));
  EXPECT_EQ(ids_of_prompt(host, "a</s>", false, true), (Ids{3, 2}));
  EXPECT_EQ(ids_of_prompt(host, "a</s>", true, false), (Ids{1, 3, 5, 6, 7, 8, 2})) << "as plain text";
}

}  // namespace
}  // namespace qsf::test
