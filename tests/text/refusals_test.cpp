// Every refusal of Tokenizer::open by itself: a sound section with one fault, and the sentence that names it. Another
// sentence, or none, means that the refusal is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

#include "text/normalizer.h"
#include "text/tokn.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

using enum TokenizerKind;
using tokn::Header;

/// Has all tables that the kind has. The last id has no text.
TokenizerSource small_source(TokenizerKind kind) {
  if (kind == byte_bpe) {
    TokenizerSource source{.pattern = "gpt-2",
                           .ignore_merges = true,
                           .tokens = {{"a"}, {"b"}, {"aa"}, {"ab"}, {"aab"}, {"bb"}, {"<s>", 0, TokenType::control}},
                           .merges = {{"a", "b"}, {"a", "a"}}};
    source.tokens.push_back({"", 0, TokenType::unused});
    return source;
  }
  return {.kind = kind,
          .pattern = "",
          .tokens = {{"<unk>", 0, TokenType::unknown},
                     {"<s>", 0, TokenType::control},
                     {"a", -1},
                     {"b", -2},
                     {"ab", -3},
                     {"<0x41>", 0, TokenType::byte},
                     {"", 0, TokenType::unused}},
          .merges = {}};
}

/// The bytes of a section, whose tables can be changed by name.
class Section {
 public:
  explicit Section(const TokenizerSource& source) {
    const Built built(source);
    EXPECT_EQ(built.problem, "");
    bytes = built.section;
    header_ = load_le<Header>(bytes.data());
    sizes_ = tokn::sizes(header_);
  }
  explicit Section(TokenizerKind kind) : Section(small_source(kind)) {}

  void set(std::size_t field, std::uint32_t value) { store_le(bytes.data() + field, value); }
  void begin(std::uint32_t id, std::uint32_t value) { put(begins(), id, value); }
  void byte(std::uint32_t value, std::uint32_t id) { put(begins() + sizes_.begins, value, id); }
  void sorted(std::uint32_t place, std::uint32_t id) { put(sorted(), place, id); }
  void added(std::uint32_t place, std::uint32_t id) { put(sorted() + sizes_.sorted, place, id); }
  void merge_begin(std::uint32_t left, std::uint32_t value) { put(merge_begins(), left, value); }
  void merge(std::uint32_t place, tokn::Merge merge) {
    store_le(bytes.data() + merges() + std::size_t{8} * place, tokn::pack(merge));
  }
  void score(std::uint32_t id, float value) { put(scores(), id, std::bit_cast<std::uint32_t>(value)); }
  void type(std::uint32_t id, std::uint8_t value) { bytes[scores() + sizes_.scores + id] = std::byte{value}; }
  void normalizer(std::size_t at, std::uint8_t value) {
    bytes[scores() + sizes_.scores + sizes_.types + at] = std::byte{value};
  }
  /// Changes the first occurrence of `from` in the tokens' texts.
  void text(std::string_view from, std::string_view to) {
    const auto in = bytes.end() - static_cast<std::ptrdiff_t>(sizes_.blob);
    const auto at = std::search(in, bytes.end(), from.begin(), from.end(),
                                [](std::byte a, char b) { return static_cast<char>(a) == b; });
    ASSERT_NE(at, bytes.end());
    std::memcpy(&*at, to.data(), to.size());
  }
  std::string blob_size() const { return std::to_string(sizes_.blob); }

  std::vector<std::byte> bytes;

 private:
  std::size_t begins() const { return sizeof(Header); }
  std::size_t sorted() const { return begins() + sizes_.begins + sizes_.bytes; }
  std::size_t merge_begins() const { return sorted() + sizes_.sorted + sizes_.added; }
  std::size_t merges() const { return merge_begins() + sizes_.merge_begins; }
  std::size_t scores() const { return merges() + sizes_.merges; }
  void put(std::size_t table, std::uint32_t at, std::uint32_t value) {
    store_le(bytes.data() + table + std::size_t{4} * at, value);
  }

  Header header_{};
  tokn::Sizes sizes_{};
};

std::string refusal(const Section& section, std::uint32_t vocab_size = 100) {
  const Result<Tokenizer> opened = Tokenizer::open(section.bytes, vocab_size);
  return opened ? "none" : std::string(opened.error().sentence);
}

/// Expects the refusal of a sound section of the kind after `damage`.
template <class Damage>
void expect_refusal(TokenizerKind kind, Damage damage, const std::string& sentence, std::uint32_t vocab_size = 100) {
  Section section(kind);
  ASSERT_EQ(refusal(section), "none");
  damage(section);
  EXPECT_EQ(refusal(section, vocab_size), "tokenizer: " + sentence);
}

/// The same for a field of the header.

void expect_refusal(TokenizerKind kind, std::size_t field, std::uint32_t value, const std::string& sentence,
                    std::uint32_t vocab_size = 100) {
  expect_refusal(kind, [&](Section& s) { s.set(field, value); }, sentence, vocab_size);
}

TEST(Refusals, OfSizes) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}}) {
    expect_refusal(
        byte_bpe, [&](Section& s) { s.bytes.resize(size); },
        "the section has " + std::to_string(size) + " bytes, less than its header");
  }
  for (const TokenizerKind kind : {byte_bpe, spm_bpe, unigram, wordpiece}) {
    const std::size_t size = Section(kind).bytes.size();
    for (const std::size_t other : {size - 1, size + 1}) {
      expect_refusal(
          kind, [&](Section& s) { s.bytes.resize(other); },
          "the tables need " + std::to_string(size) + " bytes, the section has " + std::to_string(other));
    }
  }
}

TEST(Refusals, OfHeaderFields) {
  expect_refusal(byte_bpe, offsetof(Header, version), 0, "version is 0; this build reads 1");
  expect_refusal(byte_bpe, offsetof(Header, version), 2, "version is 2; this build reads 1");
  expect_refusal(byte_bpe, offsetof(Header, kind), 4, "kind is 4; this build knows 0 to 3");
  expect_refusal(byte_bpe, offsetof(Header, pattern), 65535, "this build has no pattern 65535");
  for (const std::uint32_t flag : {0x100u, 0x80000000u}) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%x", flag);
    expect_refusal(byte_bpe, offsetof(Header, flags), flag,
                   "flags are 0x" + std::string(hex) + "; this build knows 0xff");
  }
  for (const std::uint32_t flag :
       {tokn::kAddSpacePrefix, tokn::kTrimSpaces, tokn::kPrefixUnlessSpace, tokn::kPrefixOnce}) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%x", flag | tokn::kIgnoreMerges);
    expect_refusal(byte_bpe, offsetof(Header, flags), flag | tokn::kIgnoreMerges,
                   "flags 0x" + std::string(hex) + " do not fit kind 0");
  }
  for (const TokenizerKind kind : {spm_bpe, unigram, wordpiece}) {
    expect_refusal(kind, offsetof(Header, pattern), 1, "pattern is 1, not 0");
    expect_refusal(kind, offsetof(Header, flags), tokn::kIgnoreMerges,
                   "flags 0x4 do not fit kind " + std::to_string(static_cast<int>(kind)));
  }
  for (std::size_t i = 0; i < 4; ++i) {
    expect_refusal(byte_bpe, offsetof(Header, reserved) + 4 * i, 5, "a reserved field is 5");
  }
}

TEST(Refusals, OfCountsInTheHeader) {
  expect_refusal(byte_bpe, offsetof(Header, n_tokens), 0, "it has 0 tokens, the model 100");
  expect_refusal(byte_bpe, offsetof(Header, n_tokens), 8, "it has 8 tokens, the model 7", 7);
  expect_refusal(byte_bpe, offsetof(Header, n_tokens), (1u << 22) + 1, "it has 4194305 tokens, the model 4294967295",
                 0xffffffff);
  expect_refusal(byte_bpe, offsetof(Header, n_sorted), 9, "9 sorted and 1 added ids do not fit 8 tokens");
  expect_refusal(byte_bpe, offsetof(Header, n_added), 9, "6 sorted and 9 added ids do not fit 8 tokens");
  expect_refusal(byte_bpe, offsetof(Header, flags), 0, "6 sorted and 1 added ids do not fit 8 tokens");
  expect_refusal(byte_bpe, offsetof(Header, n_merges), (1u << 20) + 1,
                 "n_merges is 1048577; at most 1048576 are possible");
  for (const TokenizerKind kind : {spm_bpe, unigram, wordpiece}) {
    expect_refusal(kind, offsetof(Header, n_merges), 1, "n_merges is 1; at most 0 are possible");
    expect_refusal(kind, offsetof(Header, unknown), 7, "the unknown token 7 is outside 7 tokens");
  }
  const auto word = [](int kind, int characters) {
    return "a word of kind " + std::to_string(kind) + " has " + std::to_string(characters) + " characters at most";
  };
  expect_refusal(byte_bpe, offsetof(Header, max_word), 1, word(0, 1));
  expect_refusal(spm_bpe, offsetof(Header, max_word), 1, word(1, 1));
  expect_refusal(unigram, offsetof(Header, max_word), 1, word(2, 1));
  expect_refusal(wordpiece, offsetof(Header, max_word), 0, word(3, 0));
  expect_refusal(wordpiece, offsetof(Header, max_word), 1001, word(3, 1001));
  Section most(wordpiece);
  most.set(offsetof(Header, max_word), 1000);
  EXPECT_EQ(refusal(most), "none");
}

TEST(Refusals, OfTokens) {
  expect_refusal(spm_bpe, [](Section& s) { s.begin(0, 1); }, "token 0 begins at 1, not 0");
  const std::string bytes = Section(spm_bpe).blob_size();
  expect_refusal(spm_bpe, [](Section& s) { s.begin(2, 4); }, "token 1 is at 5 to 4 of " + bytes + " bytes");
  expect_refusal(spm_bpe, [](Section& s) { s.begin(1, 100); }, "token 0 is at 0 to 100 of " + bytes + " bytes");
  expect_refusal(
      spm_bpe, [](Section& s) { s.begin(6, 12), s.begin(7, 12); }, "the tokens end at 12 of " + bytes + " bytes");
  for (const std::uint8_t type : {0, 7}) {
    expect_refusal(spm_bpe, [&](Section& s) { s.type(3, type); }, "the type of token 3 is " + std::to_string(type));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const TokenizerKind kind : {spm_bpe, unigram}) {
    for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      expect_refusal(kind, [&](Section& s) { s.score(6, value); }, "the score of token 6 is not a finite number");
    }
  }
}

TEST(Refusals, OfLongTokens) {
  TokenizerSource source = small_source(spm_bpe);
  source.tokens.push_back({std::string(600, 'x')});
  source.tokens.push_back({std::string(600, 'y')});
  Section section(source);
  const auto id = static_cast<std::uint32_t>(source.tokens.size() - 2);
  section.begin(id + 1, 13 + 1024);
  EXPECT_EQ(refusal(section), "none");
  section.begin(id + 1, 13 + 1025);
  EXPECT_EQ(refusal(section), "tokenizer: token 7 is at 13 to 1038 of 1213 bytes");
}

TEST(Refusals, OfTokensOfBytes) {
  for (const std::uint32_t id : {1u, 2u, 6u}) {  // three bytes, another byte, none
    expect_refusal(
        spm_bpe, [&](Section& s) { s.byte('A', id); }, "token " + std::to_string(id) + " does not stand for byte 65");
  }
  // An id after the last whose bounds, if they were read, would be the two numbers after the table of the bounds.
  expect_refusal(
      byte_bpe,
      [](Section& s) {
        s.byte('a', 9 + 200);
        s.byte(200, 0);
        s.byte(201, 1);
      },
      "token 209 does not stand for byte 97");
}

TEST(Refusals, OfOrder) {
  expect_refusal(spm_bpe, [](Section& s) { s.sorted(1, 7); }, "sorted id 7 is outside 7 tokens");
  expect_refusal(spm_bpe, [](Section& s) { s.sorted(1, 2); }, "sorted id 2 at place 1 is out of order");  // a, a
  expect_refusal(spm_bpe, [](Section& s) { s.sorted(0, 3); }, "sorted id 4 at place 1 is out of order");  // b, ab
  expect_refusal(spm_bpe, [](Section& s) { s.sorted(0, 6); }, "sorted id 6 at place 0 is out of order");  // empty
  expect_refusal(spm_bpe, [](Section& s) { s.added(1, 7); }, "added id 7 is outside 7 tokens");
  expect_refusal(spm_bpe, [](Section& s) { s.added(1, 1); }, "added id 1 at place 1 is out of order");
  expect_refusal(spm_bpe, [](Section& s) { s.added(0, 6); }, "added id 6 at place 0 is out of order");
  expect_refusal(spm_bpe, [](Section& s) { s.text("<s>", "<s\xff"); }, "the added token 1 is not UTF-8");
}

TEST(Refusals, OfMerges) {
  // The merges of "a" are with "a" and with "b".
  expect_refusal(byte_bpe, [](Section& s) { s.merge_begin(0, 1); }, "merges begin at 1, not 0");
  expect_refusal(byte_bpe, [](Section& s) { s.merge_begin(1, 3); }, "merges of token 0 are at 0 to 3 of 2");
  expect_refusal(byte_bpe, [](Section& s) { s.merge_begin(2, 1); }, "merges of token 1 are at 2 to 1 of 2");
  expect_refusal(
      byte_bpe,
      [](Section& s) {
        for (std::uint32_t left = 1; left <= 8; ++left) s.merge_begin(left, 1);
      },
      "1 of 2 merges have a left token");
  expect_refusal(byte_bpe, [](Section& s) { s.merge(0, {1, 3, 0}); }, "merge 1 is out of order");
  expect_refusal(
      byte_bpe, [](Section& s) { s.merge(1, {8, 3, 2}); }, "merge 1 names token 8, 3 or rank 2, out of range");
  expect_refusal(
      byte_bpe, [](Section& s) { s.merge(1, {9, 3, 0}); }, "merge 1 names token 9, 3 or rank 0, out of range");
  expect_refusal(
      byte_bpe, [](Section& s) { s.merge(1, {1, 9, 0}); }, "merge 1 names token 1, 9 or rank 0, out of range");
  for (const std::uint32_t result : {4u, 5u, 2u}) {  // "aab" is too long, "bb" begins otherwise, "aa" ends otherwise
    expect_refusal(
        byte_bpe, [&](Section& s) { s.merge(1, {1, result, 0}); },
        "merge 1 of 0 and 1 does not spell " + std::to_string(result));
  }
}

std::string step(std::uint32_t op, std::string_view from, std::string_view to, std::size_t to_size) {
  std::string out;
  for (const std::size_t number : {std::size_t{op}, to_size >> 16, from.size(), to_size & 0xffff}) {
    out.push_back(static_cast<char>(number & 255));
    out.push_back(static_cast<char>(number >> 8));
  }
  return out + std::string(from) + std::string(to);
}
std::string step(NormalizerOp op, std::string_view from = {}, std::string_view to = {}) {
  return step(static_cast<std::uint32_t>(op), from, to, to.size());
}

std::string refusal_of_steps(const std::string& steps) {
  const Status status = check_normalizer(std::as_bytes(std::span(steps)));
  return status ? "none" : std::string(status.error().sentence);
}

TEST(Refusals, OfTheNormalizersSteps) {
  using enum NormalizerOp;
  const auto cut = [](int i) {
    return "tokenizer: step " + std::to_string(i) + " of the normalizer is cut short or one too many";
  };
  const std::string nfcs = step(nfc) + step(nfc) + step(nfc) + step(nfc);
  EXPECT_EQ(refusal_of_steps(nfcs + nfcs), "none");
  EXPECT_EQ(refusal_of_steps(nfcs + nfcs + step(nfc)), cut(8));
  EXPECT_EQ(refusal_of_steps(step(nfc).substr(0, 7)), cut(0));
  EXPECT_EQ(refusal_of_steps(step(nfc) + step(replace, "a", "b").substr(0, 9)), cut(1));
  EXPECT_EQ(refusal_of_steps(step(prepend, "", std::string(0xffff, 'x'))), "none");
  EXPECT_EQ(refusal_of_steps(step(prepend, "", std::string(0x10000, 'x'))), cut(0));
  EXPECT_EQ(refusal_of_steps(step(char_map, "", std::string((1u << 24) + 1, '\0'))), cut(0));
  for (const std::uint32_t op : {0u, 15u}) {
    EXPECT_EQ(refusal_of_steps(step(op, "", "", 0)), "tokenizer: this build has no normalizer " + std::to_string(op));
  }
  for (const NormalizerOp op : {char_map, cluster_map}) {
    EXPECT_EQ(refusal_of_steps(step(op, "", "map")), "tokenizer: the character map of 3 bytes is damaged");
  }
}

TEST(Refusals, OfTheNormalizersTexts) {
  using enum NormalizerOp;
  const std::string map("\4\0\0\0\0\0\0\0\0", 9);  // one unit, one empty text
  EXPECT_EQ(refusal_of_steps(step(char_map, "", map)), "none");
  EXPECT_EQ(refusal_of_steps(step(replace, std::string(16, 'a'), "")), "none");
  const std::string sentence = "tokenizer: the texts of step 0 of the normalizer do not fit its operation ";
  const std::string replaces = sentence + "9", prepends = sentence + "8", composes = sentence + "1";
  EXPECT_EQ(refusal_of_steps(step(replace, "\xff", "a")), replaces);
  EXPECT_EQ(refusal_of_steps(step(replace, "a", "\xff")), replaces);
  EXPECT_EQ(refusal_of_steps(step(replace, "", "a")), replaces);
  EXPECT_EQ(refusal_of_steps(step(replace, std::string(17, 'a'), "")), replaces);
  EXPECT_EQ(refusal_of_steps(step(prepend, "a", "b")), prepends);
  EXPECT_EQ(refusal_of_steps(step(nfc, "a")), composes);
  EXPECT_EQ(refusal_of_steps(step(nfc, "", "a")), composes);
  EXPECT_EQ(refusal_of_steps(step(char_map, "a", map)), sentence + "12");
  EXPECT_EQ(refusal_of_steps(step(cluster_map, "", map)), "none");
  EXPECT_EQ(refusal_of_steps(step(cluster_map, "a", map)), sentence + "13");
  EXPECT_EQ(refusal_of_steps(step(join_spaces)), "none");
  EXPECT_EQ(refusal_of_steps(step(join_spaces, "", "a")), sentence + "14");
}

TEST(Refusals, OfTheNormalizerReachTheTokenizer) {
  TokenizerSource source = small_source(spm_bpe);
  source.normalizer = {{NormalizerOp::nfc, "", ""}};
  Section section(source);
  ASSERT_EQ(refusal(section), "none");
  section.normalizer(0, 15);
  EXPECT_EQ(refusal(section), "tokenizer: this build has no normalizer 15");
}

}  // namespace
}  // namespace qsf::test
