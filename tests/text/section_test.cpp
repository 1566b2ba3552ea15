// Sections that are damaged, texts that are too long, sources that cannot be built.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "text/tokn.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

TokenizerSource byte_source() {
  TokenizerSource source = from_tokenizer_json(source_dir() + "/tests/data/llama/tokenizer.json");
  source.ignore_merges = true;  // so that all tables are there
  source.tokens.push_back({"<|user|>", 0, TokenType::user_defined});
  source.tokens.push_back({"<|use", 0, TokenType::control});
  return source;
}

/// Llama 2's shape in small: unknown, begin, end, all bytes, then words.
TokenizerSource spm_source(bool bytes = true) {
  TokenizerSource source{.kind = TokenizerKind::spm_bpe,
                         .pattern = "",
                         .add_bos = true,
                         .add_space_prefix = true,
                         .tokens = {{"<unk>", 0, TokenType::unknown}, {"<s>", 0, TokenType::control}},
                         .merges = {}};
  char name[8];
  for (int value = 0; bytes && value < 256; ++value) {
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(value));
    source.tokens.push_back({name, 0, TokenType::byte});
  }
  for (const char* piece : {"▁", "a", "b", "ab", "▁a", "▁ab", "abab", "é", "ba"}) {
    source.tokens.push_back({piece, -static_cast<float>(source.tokens.size())});
  }
  source.tokens.push_back({"<|user|>", 0, TokenType::user_defined});
  return source;
}

std::uint32_t id_of(const TokenizerSource& source, const std::string& text) {
  for (std::uint32_t id = 0; id < source.tokens.size(); ++id) {
    if (source.tokens[id].text == text) return id;
  }
  ADD_FAILURE() << text;
  return 0;
}

/// Opens a damaged section; if that works, everything can be called without a sanitizer's complaint.
bool use(std::span<const std::byte> section, std::uint32_t vocab_size) {
  const std::vector<std::byte> exact(section.begin(), section.end());  // so that reads past the end are seen
  const Result<Tokenizer> opened = Tokenizer::open(exact, vocab_size);
  if (!opened) {
    EXPECT_NE(error_of(opened).code, ErrorCode::none);
    EXPECT_GT(std::strlen(error_of(opened).sentence), 10u);
    return false;
  }
  std::vector<std::byte> scratch(4096);
  Ids ids(400);
  for (const std::string_view text :
       {"", "abab ab a b é 你 <|user|><|use|endoftext|>", "The king said 12345 it's\n\n  so"}) {
    for (const bool special : {false, true}) {
      const Result<std::uint32_t> n = opened->encode(text, special, ids, scratch);
      for (std::uint32_t i = 0; n && i < *n; ++i) EXPECT_LT(ids[i], vocab_size);
    }
  }
  std::size_t size = 0;
  for (std::uint32_t id = 0; id < vocab_size + 2; ++id) size += opened->bytes(id).size() + opened->is_control(id);
  EXPECT_LE(size, section.size() + 5 * vocab_size);
  return true;
}

class Damaged : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    TokenizerSource source = GetParam() ? spm_source() : byte_source();
    source.tokens.back().attributes = kAllTokenAttributes;  // so that all tables are there
    const Built built(source);
    ASSERT_EQ(built.problem, "");
    section = built.section;
    n_tokens = built.tokenizer.n_tokens();
  }
  std::vector<std::byte> section;
  std::uint32_t n_tokens = 0;
};

TEST_P(Damaged, EveryHeaderField) {
  ASSERT_TRUE(use(section, n_tokens));
  for (std::size_t at = 0; at < sizeof(tokn::Header); at += 4) {
    const auto original = load_le<std::uint32_t>(section.data() + at);
    for (const std::uint32_t value :
         {0u, 1u, 2u, 3u, original - 1, original + 1, 0x7fffffffu, 0xffffffffu, 0x80000000u}) {
      std::vector<std::byte> damaged = section;
      store_le(damaged.data() + at, value);
      const bool opened = use(damaged, n_tokens);
      // An spm_bpe section has the tables of a unigram. The pattern, the flags and the unknown token have other valid
      // values; all else must fit exactly.
      const bool free = at == offsetof(tokn::Header, pattern) || at == offsetof(tokn::Header, flags) ||
                        at == offsetof(tokn::Header, unknown) ||
                        (GetParam() && at == offsetof(tokn::Header, kind) && value == 2);
      if (value != original && !free) {
        EXPECT_FALSE(opened) << "field at " << at << " = " << value;
      }
    }
  }
}

TEST_P(Damaged, EveryLength) {
  for (std::size_t size = 0; size < section.size(); size += size < 100 ? 1 : 13) {
    EXPECT_FALSE(use(std::span(section).first(size), n_tokens)) << size;
  }
  section.push_back(std::byte{0});
  EXPECT_FALSE(use(section, n_tokens));
}

TEST_P(Damaged, RandomBytes) {
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 1500; ++round) {
    std::vector<std::byte> damaged = section;
    for (std::uint32_t n = 1 + random() % 3; n > 0; --n) {
      damaged[sizeof(tokn::Header) + random() % (section.size() - sizeof(tokn::Header))] = std::byte(random());
    }
    refused += use(damaged, n_tokens) ? 0 : 1;
  }
  EXPECT_GT(refused, 300);  // the rest changed texts or scores: another vocabulary, not a broken one
}

TEST_P(Damaged, SmallerModel) {
  EXPECT_FALSE(use(section, n_tokens - 1));
  EXPECT_FALSE(use(section, 0));
  EXPECT_TRUE(use(section, n_tokens + 100));  // padded ids decode to nothing
}

INSTANTIATE_TEST_SUITE_P(Kinds, Damaged, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SpmBpe" : "ByteBpe"); });

TEST(Section, IdsOutsideTheVocabularyDecodeToNothing) {
  const Built built(byte_source());
  EXPECT_EQ(built.tokenizer.bytes(built.tokenizer.n_tokens()), "");
  EXPECT_EQ(built.tokenizer.bytes(0xffffffffu), "");
  EXPECT_FALSE(built.tokenizer.is_control(0xffffffffu));
}

TEST(Section, UnusedTokensDecodeToNothing) {
  TokenizerSource source = spm_source();
  source.tokens.push_back({"<unused0>", 0, TokenType::unused});
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(built.tokenizer.bytes(id_of(source, "<unused0>")), "");
  EXPECT_FALSE(built.tokenizer.is_control(id_of(source, "<unused0>")));
}

TEST(Encode, AddedTokensLongestFirst) {
  const TokenizerSource source = byte_source();
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  const std::uint32_t user = id_of(source, "<|user|>"), use = id_of(source, "<|use");
  const Ids plain = *built.encode("<|use");
  EXPECT_GT(plain.size(), 1u);
  EXPECT_EQ(*built.encode("<|user|>", true), Ids{user});
  EXPECT_EQ(*built.encode("<|user|>", false), Ids{user});  // user-defined: in any text
  EXPECT_EQ(*built.encode("<|use<|user|><|use", true), (Ids{use, user, use}));
  Ids wanted = plain;
  wanted.push_back(user);
  EXPECT_EQ(*built.encode("<|use<|user|>", false), wanted);
  EXPECT_EQ(built.tokenizer.bytes(use), "");
  EXPECT_EQ(built.tokenizer.bytes(user), "<|user|>");
  EXPECT_TRUE(built.tokenizer.is_control(use));
  EXPECT_FALSE(built.tokenizer.is_control(user));
}

TEST(Encode, SpmPrefixBytesAndUnknown) {
  const TokenizerSource source = spm_source();
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  const auto id = [&](const char* text) { return id_of(source, text); };
  EXPECT_EQ(*built.encode("ab"), (Ids{id("▁ab")}));
  EXPECT_EQ(*built.encode("c"), (Ids{id("▁"), id("<0x63>")}));
  EXPECT_EQ(*built.encode("ü"), (Ids{id("▁"), id("<0xC3>"), id("<0xBC>")}));
  EXPECT_EQ(*built.encode("a<|user|>a"), (Ids{id("▁a"), id("<|user|>"), id("▁a")}));
  EXPECT_EQ(*built.encode("<s>a", true), (Ids{id("<s>"), id("▁a")}));
  EXPECT_EQ(built.tokenizer.bytes(id("<0x63>")), "c");
  EXPECT_EQ(built.tokenizer.bytes(id("▁ab")), " ab");
  EXPECT_EQ(built.tokenizer.bytes(0), "\uFFFD");
  EXPECT_TRUE(built.tokenizer.add_bos());

  TokenizerSource no_bytes = spm_source(false);
  const Built without(no_bytes);
  EXPECT_EQ(*without.encode("xyza"), (Ids{id_of(no_bytes, "▁"), 0, id_of(no_bytes, "a")}));
  no_bytes.tokens[0].type = TokenType::control;
  EXPECT_EQ(error_of(Built(no_bytes).encode("x")).code, ErrorCode::bad_text);
}

TEST(Encode, BytesWithoutATokenAreLeftOutOrUnknown) {
  TokenizerSource source{.pattern = "gpt-2", .tokens = {{"a"}, {"b"}, {"ab"}}, .merges = {{"a", "b"}}};
  // As Hugging Face's BPE model without and with an unk_token.
  EXPECT_EQ(*Built(source).encode("xaxbx"), Ids{2});
  EXPECT_EQ(*Built(source).encode("xx"), Ids{});
  source.tokens.push_back({"<unk>", 0, TokenType::unknown});
  EXPECT_EQ(*Built(source).encode("xaxbx"), (Ids{3, 0, 3, 1, 3}));
  EXPECT_EQ(*Built(source).encode("xabx"), (Ids{3, 2, 3}));
}

TEST(Encode, AWordHasAtMostMaxWordCharacters) {
  const Built built({.kind = TokenizerKind::wordpiece,
                     .pattern = "",
                     .max_word = 3,
                     .tokens = {{"[UNK]", 0, TokenType::unknown}, {"\u2581ab"}, {"c"}},
                     .merges = {}});
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(*built.encode("abc"), (Ids{1, 2}));
  EXPECT_EQ(*built.encode("abcc"), Ids{0});
}

/// A word begins with more than the space that marks a beginning, even if the vocabulary has that alone.
TEST(Encode, AWordBeginsWithOneOfItsCharacters) {
  const Built built({.kind = TokenizerKind::wordpiece,
                     .pattern = "",
                     .max_word = 9,
                     .tokens = {{"[UNK]", 0, TokenType::unknown}, {"\u2581"}, {"a"}, {"\u2581b"}},
                     .merges = {}});
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(*built.encode("a"), Ids{0});
  EXPECT_EQ(*built.encode("ba a"), (Ids{3, 2, 0}));
}

/// Of equal sums the one that is found first stays, as in SentencePiece.
TEST(Encode, EqualPathsOfUnigramKeepTheFirst) {
  const Built built({.kind = TokenizerKind::unigram,
                     .pattern = "",
                     .tokens = {{"<unk>", 0, TokenType::unknown}, {"a", -1}, {"aa", -2}},
                     .merges = {}});
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(*built.encode("aaa"), (Ids{1, 2}));
}

/// An unknown character costs 10 more than the worst token, so that tokens spell whatever they can.
TEST(Encode, UnknownIsWorseThanTheWorstToken) {
  const Built built({.kind = TokenizerKind::unigram,
                     .pattern = "",
                     .tokens = {{"<unk>", 0, TokenType::unknown}, {"xy", -20}, {"y", -1}},
                     .merges = {}});
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(*built.encode("xy"), Ids{1});
  EXPECT_EQ(*built.encode("xxy"), (Ids{0, 1}));
}

/// Of two pairs of the same score the left one is merged, also if one score is written as -0.
TEST(Encode, EqualScoresMergeTheLeftmost) {
  for (const auto& [left, right] : {std::pair(-0.0f, 0.0f), {0.0f, -0.0f}, {-1.0f, -1.0f}}) {
    const Built built({.kind = TokenizerKind::spm_bpe,
                       .pattern = "",
                       .tokens = {{"a", -9}, {"b", -9}, {"c", -9}, {"ab", left}, {"bc", right}},
                       .merges = {}});
    ASSERT_EQ(built.problem, "");
    EXPECT_EQ(*built.encode("abc"), (Ids{3, 2})) << left << " " << right;
  }
}

TEST(Encode, SpmTokensAcrossWords) {
  TokenizerSource source = spm_source();
  source.tokens.push_back({"a▁", -1});
  source.tokens.push_back({"a▁b", 0});
  const Built built(source);
  EXPECT_EQ(*built.encode("ba b"), (Ids{id_of(source, "▁"), id_of(source, "b"), id_of(source, "a▁b")}));
}

TEST(Encode, InvalidTextNamesThePlace) {
  const Built built(byte_source());
  const Result<Ids> ids = built.encode("ab\xC3(");
  ASSERT_FALSE(ids);
  EXPECT_EQ(error_of(ids).code, ErrorCode::bad_text);
  EXPECT_STREQ(error_of(ids).sentence, "the text is not valid UTF-8 at byte 2 (0xc3)");
  EXPECT_EQ(error_of(built.encode("a\xED\xA0\x80")).code, ErrorCode::bad_text);
  EXPECT_EQ(error_of(built.encode("a\xE4\xBD")).code, ErrorCode::bad_text);
}

TEST(Encode, ShortOutput) {
  const Built built(byte_source());
  std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
  Ids ids(3);
  const Result<std::uint32_t> n = built.tokenizer.encode("1 2 3 4 5", false, ids, scratch);
  ASSERT_FALSE(n);
  EXPECT_EQ(error_of(n).code, ErrorCode::context_full);
  const std::size_t all = built.encode("1 2 3 4 5")->size();
  EXPECT_EQ(std::string(error_of(n).sentence),
            "the text has " + std::to_string(all) + " tokens, and there is room for 3");
  EXPECT_EQ(error_of(built.tokenizer.encode("1", false, ids, std::span(scratch).first(8))).code,
            ErrorCode::bad_argument);
  EXPECT_FALSE(Tokenizer().encode("a", false, ids, scratch));
}

/// Text that is cut to fit a small scratch has the ids of the text merged whole.
TEST(Encode, CutsWhereNoTokenSpans) {
  std::mt19937 random(2);
  const Built bytes(byte_source()), spm(spm_source());
  const auto check = [&](const Built& built, const char* const* parts, std::size_t n_parts) {
    for (int round = 0; round < 30; ++round) {
      std::string text;
      while (text.size() < 3000) text += parts[random() % n_parts];
      const Result<Ids> whole = built.encode(text), cut = built.encode(text, false, 1024);
      ASSERT_TRUE(whole) << whole.error().sentence;
      ASSERT_TRUE(cut) << cut.error().sentence;
      EXPECT_EQ(*whole, *cut) << text;
    }
  };
  const char* const letters[]{"the", "and", "xq", "zj", "ing", "你", "qvx"};
  check(bytes, letters, std::size(letters));
  const char* const words[]{"ab", "a", "ba", "cé", "你", "x"};
  check(spm, words, std::size(words));
  const char* const spaced[]{"ab ", "a", "  b", " abab"};
  check(spm, spaced, std::size(spaced));
}

/// A row of unknown characters is one token, and it is the same row where a window ends.
TEST(Encode, RowsOfUnknownCharactersGoOnInTheNextWindow) {
  const Built built(spm_source(false));
  ASSERT_EQ(built.problem, "");
  std::mt19937 random(4);
  for (const char* const parts : {"ax", "abx", "axy", "xya"}) {
    std::string run;
    while (run.size() < 3000) run += parts[random() % std::strlen(parts)];
    const Result<Ids> whole = built.encode(run);
    ASSERT_TRUE(whole) << whole.error().sentence;
    for (const std::size_t scratch : {400u, 777u, 1500u}) {
      const Result<Ids> windows = built.encode(run, false, scratch);
      ASSERT_TRUE(windows) << windows.error().sentence;
      EXPECT_EQ(*windows, *whole) << parts << " " << scratch;
    }
  }
}

/// A run that is longer than the scratch is merged in windows, to what it is merged to as a whole.
TEST(Encode, LongRunsAreMergedInWindows) {
  const Built bytes(byte_source()), spm(spm_source());
  std::mt19937 random(3);
  const char* const syllables[]{"ab", "a", "ba", "ing", "th", "e", "b"};
  for (int round = 0; round < 20; ++round) {
    std::string run;
    while (run.size() < 60000) run += round == 0 ? "ab" : round == 1 ? "a" : syllables[random() % std::size(syllables)];
    for (const Built* built : {&bytes, &spm}) {
      const Result<Ids> whole = built->encode(run, false, std::size_t{1} << 20);
      ASSERT_TRUE(whole) << whole.error().sentence;
      for (const std::size_t scratch : {std::size_t{1500}, std::size_t{20000}, Tokenizer::kScratchBytes}) {
        const Result<Ids> windows = built->encode(run, false, scratch);
        ASSERT_TRUE(windows) << windows.error().sentence;
        ASSERT_EQ(*windows, *whole) << round << " " << scratch;
      }
    }
  }
}

TEST(Encode, LongRunsAreWhole) {
  const Built bytes(byte_source()), spm(spm_source());
  std::string run;
  while (run.size() < 1000000) run += "ab";
  const Result<Ids> a = bytes.encode(run), b = spm.encode(run);
  ASSERT_TRUE(a) << a.error().sentence;
  ASSERT_TRUE(b) << b.error().sentence;
  EXPECT_EQ(bytes.decode(*a), run);
  EXPECT_EQ(spm.decode(*b), " " + run);
  std::string prose;
  while (prose.size() < 300000) prose += "ab abab, a\nba é ";
  for (const Built* built : {&bytes, &spm}) EXPECT_TRUE(built->encode(prose));
}

/// Merges whose ranks fall along the text: what is at its end decides what is at its beginning.
TEST(Encode, WhatNoWindowCanTellIsRefused) {
  constexpr const char* kLetters = "!#$%&()*+,-./:;<=>?@[]^_{|}~";
  TokenizerSource source{.pattern = "gpt-2", .tokens = {}, .merges = {}};
  const std::string all = kLetters;
  for (const char c : all) source.tokens.push_back({std::string(1, c)});
  for (std::size_t i = all.size() - 1; i > 0; --i) {
    source.tokens.push_back({all.substr(i - 1, 2)});
    source.merges.emplace_back(all.substr(i - 1, 1), all.substr(i, 1));
  }
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  constexpr std::size_t kSmall = 16 * 15 + 4;  // windows of 16 bytes
  int n_refused = 0;
  for (const std::string& text : {all, all.substr(1), all.substr(0, all.size() - 1)}) {
    const Result<Ids> whole = built.encode(text), windows = built.encode(text, false, kSmall);
    ASSERT_TRUE(whole);
    if (windows) {
      EXPECT_EQ(*windows, *whole);
      continue;
    }
    ++n_refused;
    EXPECT_EQ(error_of(windows).code, ErrorCode::unsupported);
    EXPECT_NE(std::string(error_of(windows).sentence).find("too long to merge"), std::string::npos);
  }
  EXPECT_GT(n_refused, 0);
}

TEST(Build, RefusesWhatItCannotDo) {
  const auto problem = [](const TokenizerSource& source) {
    const Result<std::vector<std::byte>> built = build_tokenizer(source);
    return built ? std::pair(ErrorCode::none, std::string())
                 : std::pair(built.error().code, std::string(built.error().sentence));
  };
  TokenizerSource source = byte_source();
  source.pattern = R"(\w+)";
  EXPECT_EQ(problem(source),
            std::pair(ErrorCode::unsupported, std::string(R"(tokenizer: the pre-tokenizer "\w+" is not known)")));
  source = byte_source();
  source.merges.emplace_back("no", "such");
  EXPECT_EQ(problem(source).first, ErrorCode::bad_tokenizer);
  source = byte_source();
  source.merges.push_back(source.merges[0]);
  EXPECT_EQ(problem(source).first, ErrorCode::bad_tokenizer);
  source = byte_source();
  source.tokens.push_back({std::string(1025, 'x')});
  EXPECT_EQ(problem(source).first, ErrorCode::unsupported);
  EXPECT_EQ(problem({}).first, ErrorCode::unsupported);
  source = spm_source();
  source.tokens.push_back({"<0xG0>", 0, TokenType::byte});
  EXPECT_EQ(problem(source).first, ErrorCode::bad_tokenizer);
  source = spm_source();
  source.merges.emplace_back("a", "b");
  EXPECT_EQ(problem(source).first, ErrorCode::bad_tokenizer);
  source = spm_source();
  source.tokens[260].score = std::numeric_limits<float>::infinity();
  EXPECT_EQ(problem(source).first, ErrorCode::bad_tokenizer);
}

/// Merges make ordinary tokens: of two with the same text the added one is only found as it is written.
TEST(Build, OrdinaryTokensComeBeforeAddedOnesOfTheSameText) {
  TokenizerSource source = spm_source();
  const std::uint32_t added = id_of(source, "a");
  source.tokens[added] = {"▁ab", 0, TokenType::user_defined};  // before the ordinary one
  source.tokens.push_back({"a", -1});
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  const std::uint32_t ordinary = id_of(spm_source(), "▁ab");
  EXPECT_EQ(*built.encode("ab"), Ids{ordinary});
  EXPECT_EQ(*built.encode("ab ab"), (Ids{ordinary, added}));
}

TEST(Build, NamesOfLlama3IgnoreMerges) {
  TokenizerSource source = byte_source();
  source.ignore_merges = false;
  const Built gpt2(source);
  source.pattern = "llama-bpe";
  const Built llama(source);
  EXPECT_EQ(load_le<tokn::Header>(gpt2.section.data()).flags, 0u);
  EXPECT_EQ(load_le<tokn::Header>(llama.section.data()).flags, tokn::kIgnoreMerges);
}

}  // namespace
}  // namespace qsf::test
