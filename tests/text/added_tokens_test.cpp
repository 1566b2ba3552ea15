// Attributes of added tokens: the white space that they take, their neighbours, the normalized text. Ids of texts of
// all kinds against Hugging Face's library are in tests/converter/vocabularies_test.cpp.
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "text/tokn.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

using TokenIds = std::vector<std::uint32_t>;
using enum TokenAttribute;

/// Letters, digits and white space, then the added tokens from id kAdded on: those of `added`, all control tokens.
constexpr std::string_view kCharacters = "abcdefgxyz_2. \n\t";
constexpr auto kAdded = static_cast<std::uint32_t>(1 + kCharacters.size());

TokenizerSource source_with(std::vector<std::pair<std::string, int>> added,
                            std::vector<NormalizerStep> normalizer = {}) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.normalizer = std::move(normalizer);
  source.tokens.push_back({"<unk>", 0, TokenType::unknown});
  for (const char c : kCharacters) source.tokens.push_back({std::string(1, c)});
  for (auto& [text, attributes] : added) {
    source.tokens.push_back({std::move(text), 0, TokenType::control, static_cast<std::uint8_t>(attributes)});
  }
  return source;
}

/// Returns the ids of a text in which added tokens are written as capital letters: A is the first.
TokenIds ids_in(std::string_view text) {
  TokenIds ids;
  for (const char c : text) {
    ids.push_back(c >= 'A' && c <= 'Z' ? kAdded + static_cast<std::uint32_t>(c - 'A')
                                       : static_cast<std::uint32_t>(1 + kCharacters.find(c)));
  }
  return ids;
}

constexpr int bits(TokenAttribute a) { return static_cast<int>(a); }

TEST(AddedTokens, TakeWhiteSpace) {
  const Built built(source_with({{"<l>", bits(lstrip)}, {"<r>", bits(rstrip)}, {"<b>", 3}, {"<p>", 0}}));
  ASSERT_EQ(built.problem, "");
  for (const auto& [text, wanted] : {std::pair("a <l> b", "aA b"),
                                     {"a <r> b", "a Bb"},
                                     {"a <b> b", "aCb"},
                                     {"a <p> b", "a D b"},
                                     {" \t\n<l>\n", "A\n"},
                                     {"\n<r>\t\n ", "\nB"},
                                     {"<r> <r> <l>", "BBA"},
                                     {"<r>\u00a0\u2028\u3000a", "Ba"},
                                     {"a\u2003<l>", "aA"},
                                     {"<r>\n<p>\n<l>", "BDA"},
                                     {"<b>", "C"},
                                     {"  a  ", "  a  "}}) {
    EXPECT_EQ(*built.encode(text, true), ids_in(wanted)) << text;
  }
  // White space within a plain range is taken, too, as the token is the template's.
  TokenIds ids(8);
  std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
  const std::array<TextRange, 1> plain{TextRange{3, 9}};
  const Result<std::uint32_t> n = built.tokenizer.encode("<r>  <r>a", true, ids, scratch, plain);
  ASSERT_TRUE(n) << n.error().sentence;
  ids.resize(*n);
  EXPECT_EQ(ids, (TokenIds{kAdded + 1, 0, 0 + ids_in("a")[0]})) << "< and > are unknown; r is, too";
}

TEST(AddedTokens, AreFoundAsWordsOnly) {
  const Built built(source_with({{"abc", bits(single_word)}, {"xy", bits(single_word) | bits(rstrip)}}));
  ASSERT_EQ(built.problem, "");
  for (const auto& [text, wanted] : {std::pair("abc", "A"),
                                     {"abcd", "abcd"},
                                     {"dabc", "dabc"},
                                     {".abc.", ".A."},
                                     {"_abc", "_abc"},
                                     {"abc2", "abc2"},
                                     {"abc abc", "A A"},
                                     {"xy  abc", "BA"},
                                     {"xyz xy a", "xyz Ba"}}) {
    EXPECT_EQ(*built.encode(text, true), ids_in(wanted)) << text;
  }
}

/// The second round sees the texts between the tokens of the first, so that these are no neighbours there.
TEST(AddedTokens, OfTheFirstRoundAreNoNeighboursInTheSecond) {
  const Built built(source_with({{"abc", bits(single_word) | bits(normalized)}, {"xy", 0}}));
  ASSERT_EQ(built.problem, "");
  for (const auto& [text, wanted] :
       {std::pair("xyabc", "BA"), {"abcxy", "AB"}, {"xyabcxy", "BAB"}, {"xydabc", "Bdabc"}, {"xabcxy", "xabcB"}}) {
    EXPECT_EQ(*built.encode(text, true), ids_in(wanted)) << text;
  }
}

TEST(AddedTokens, AreFoundInTheNormalizedText) {
  const std::vector<NormalizerStep> lower{{NormalizerOp::lowercase, {}, {}}};
  const Built built(source_with(
      {{"abc", bits(normalized)}, {"<b>", 0}, {"D", bits(normalized)}, {"  ", bits(normalized)}, {"<l>", bits(lstrip)}},
      lower));
  ASSERT_EQ(built.problem, "");
  for (const auto& [text, wanted] : {std::pair("xABCx", "xAx"),
                                     {"AbCabc", "AA"},
                                     {"A", "a"},
                                     {"Bc<b>ABC", "bcBA"},
                                     {"<B>", nullptr},
                                     {"D", "C"},
                                     {"d", "d"},
                                     {"a  a", "aDa"},
                                     {"a  <l>", "aE"}}) {
    const Result<TokenIds> ids = built.encode(text, true);
    ASSERT_TRUE(ids) << ids.error().sentence;
    EXPECT_EQ(*ids, wanted != nullptr ? ids_in(wanted) : TokenIds({0, ids_in("b")[0], 0})) << text;
  }
}

/// Files of tokenizers whose attributes make no difference have the bytes of earlier versions.
TEST(AddedTokens, WithoutAttributesHaveNoTable) {
  const std::vector<NormalizerStep> composed{{NormalizerOp::nfc, {}, {}}};
  for (const auto& steps : {std::vector<NormalizerStep>{}, composed}) {
    const Built plain(source_with({{"<l>", 0}}, steps)), with(source_with({{"<l>", bits(normalized)}}, steps));
    EXPECT_EQ(with.section, plain.section);
    const Built other(source_with({{"<l>", bits(rstrip)}}, steps));
    EXPECT_EQ(other.section.size(), plain.section.size() + 2) << "the unknown token and this one";
    EXPECT_EQ(load_le<tokn::Header>(other.section.data()).flags, tokn::kAttributes);
    EXPECT_EQ(load_le<tokn::Header>(plain.section.data()).flags, 0u);
  }
}

TEST(AddedTokens, UnknownAttributesAreRefused) {
  const TokenizerSource source = source_with({{"<l>", bits(lstrip)}});
  const Built built(source);
  const tokn::Header header = load_le<tokn::Header>(built.section.data());
  const tokn::Sizes sizes = tokn::sizes(header);
  std::vector<std::byte> section = built.section;
  const std::size_t at = section.size() - sizes.blob - sizes.normalizer - sizes.attributes;
  EXPECT_EQ(section[at], std::byte{1});
  section[at] = std::byte{16};
  const auto opened = Tokenizer::open(section, header.n_tokens);
  EXPECT_EQ(error_of(opened).code, ErrorCode::unsupported);
  EXPECT_STREQ(error_of(opened).sentence, "tokenizer: the attributes of token 17 are 0x10; this build knows 0xf");
}

}  // namespace
}  // namespace qsf::test
