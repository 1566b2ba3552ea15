// How much work a text may make: tables within the file's limits that would make it endless, each with texts of some
// KB. Steps are counted, no time is taken.
#include "text/text_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>

#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "text/char_maps.h"
#include "text/encoder.h"
#include "text/tokn.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

using enum NormalizerOp;

constexpr std::size_t kTextBytes = 4000;
/// What may be done between two looks at the count: a buffer of normal text that is cut, a window that is merged.
constexpr std::uint64_t kBetween = 1u << 20;

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string out;
  while (out.size() + part.size() <= bytes) out += part;
  return out;
}

template <class T>
std::vector<T> times(std::size_t n, const T& value) {
  return std::vector<T>(n, value);
}

struct Named {
  std::string name;
  std::vector<NormalizerStep> steps;
  bool refuses = false;  // some of the texts, for their work
};

std::string map_of(const std::vector<std::pair<std::string, std::string>>& keys) {
  Trie trie(1u << 15);
  trie.add(keys);
  return trie.map();
}

/// Chains of eight steps, each of which makes much of little, or little of much.
std::vector<Named> hostile_normalizers() {
  const std::string much = repeated("a", 0xffff), longest = repeated("a", 1024), deep = repeated("a", 63);
  std::vector<Named> all{
      {"replace", times(8, NormalizerStep{replace, "a", much})},
      {"erase", {}},
      {"prepend", times(8, NormalizerStep{prepend, "", much})},
      {"map", times(8, NormalizerStep{char_map, "", map_of({{"a", longest}})})},
      {"map and erase", times(8, NormalizerStep{char_map, "", map_of({{"a", longest}})})},
      {"keys that are no match", times(8, NormalizerStep{char_map, "", map_of({{deep + "b", "x"}})})},
      {"texts that are no match", times(8, NormalizerStep{replace, repeated("a", 15) + "b", much})},
      {"clusters", times(8, NormalizerStep{cluster_map, "", map_of({{"a", longest}})})},
      {"clusters that are no match", times(8, NormalizerStep{cluster_map, "", map_of({{"aa", "x"}})})},
      {"spaces", times(8, NormalizerStep{join_spaces, "", ""})},
      {"compatibility", times(8, NormalizerStep{nfkd, "", ""})},
      {"ideographs", times(8, NormalizerStep{space_ideographs, "", ""})},
      {"marks", {{nfd, "", ""}, {nfc, "", ""}, {nfd, "", ""}, {nfkc, "", ""}, {strip_accents, "", ""}}},
      {"clean", times(8, NormalizerStep{clean, "", ""})},
  };
  all[1].steps = times(4, NormalizerStep{replace, "a", much});
  all[1].steps.push_back({replace, "a", ""});
  all[4].steps.back() = {replace, "a", ""};
  for (const std::size_t endless : {0, 1, 3, 4, 7}) all[endless].refuses = true;
  return all;
}

std::vector<std::string> prompts() {
  std::string marks = "e";
  for (int i = 0; i < 60; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0323";  // in two classes, the greater first
  std::vector<std::string> all{"a", ""};
  for (const std::string& part :
       {std::string("a"), std::string("ab"), std::string("a\n"), std::string("a "), std::string("b"), marks,
        std::string("\uFDFA"), std::string("\u4F60"), std::string("\x01"), std::string(" "), std::string("<a>")}) {
    all.push_back(repeated(part, kTextBytes));
    all.push_back("b" + repeated(part, kTextBytes) + "b");
  }
  return all;
}

/// A vocabulary of each kind: a few letters, and the tokens that are given.
TokenizerSource source_of(TokenizerKind kind, const std::vector<TokenizerSource::Token>& tokens = {}) {
  TokenizerSource source{.kind = kind,
                         .pattern = kind == TokenizerKind::byte_bpe ? "gpt-2" : "",
                         .tokens = {{"<unk>", 0, TokenType::unknown}},
                         .merges = {}};
  for (const char* letter : {"a", "b", " ", "\n", "x"}) {
    const bool space = letter[0] == ' ', line = letter[0] == '\n';
    const bool bytes = kind == TokenizerKind::byte_bpe;
    source.tokens.push_back({space ? bytes ? "\u0120" : "\u2581" : line && bytes ? "\u010A" : letter, -1});
  }
  source.tokens.insert(source.tokens.end(), tokens.begin(), tokens.end());
  return source;
}

struct Taken {
  std::uint64_t steps;
  Result<std::uint32_t> ids;
};

Taken encode(const Built& built, std::string_view text, std::span<const TextRange> plain = {},
             const std::atomic<bool>* cancel = nullptr) {
  static std::vector<std::uint32_t> ids(1u << 22);
  static std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
  TextWork work(text.size(), cancel);
  const Result<std::uint32_t> n = Encoder(built.tokenizer, ids, scratch, work).encode(text, plain.empty(), plain);
  return {work.done(), n};
}

bool is_refusal_of_work(const Error& error) {
  return error.code == ErrorCode::unsupported && std::strstr(error.sentence, "steps to read a text") != nullptr;
}

/// The bound holds; gives whether the text was refused for its work.
bool expect_bounded(const Built& built, std::string_view text, const std::string& name,
                    std::span<const TextRange> plain = {}) {
  EXPECT_EQ(built.problem, "") << name;
  const Taken taken = encode(built, text, plain);
  EXPECT_LE(taken.steps, TextWork::bound(text.size()) + kBetween) << name << ": " << text.substr(0, 8);
  if (taken.ids) return false;
  EXPECT_NE(error_of(taken.ids).code, ErrorCode::cancelled);
  return is_refusal_of_work(taken.ids.error());
}

TEST(Work, OfEveryNormalizerIsBounded) {
  for (const Named& normalizer : hostile_normalizers()) {
    std::size_t n_refused = 0;
    for (const TokenizerKind kind :
         {TokenizerKind::byte_bpe, TokenizerKind::spm_bpe, TokenizerKind::unigram, TokenizerKind::wordpiece}) {
      TokenizerSource source = source_of(kind);
      source.normalizer = normalizer.steps;
      const Built built(source);
      // What unigram and WordPiece do with a normal form is what SentencePiece BPE does.
      const bool every = kind == TokenizerKind::byte_bpe || kind == TokenizerKind::spm_bpe;
      const std::vector<std::string> texts = prompts();
      for (const std::string& text : std::span(texts).first(every ? texts.size() : 4)) {
        n_refused += expect_bounded(built, text, normalizer.name) ? 1 : 0;
      }
    }
    EXPECT_TRUE(!normalizer.refuses || n_refused > 0) << normalizer.name;
  }
}

/// A chain of one short text says why, at any length.
TEST(Work, TheRefusalSaysWhatIsTooMuch) {
  TokenizerSource source = source_of(TokenizerKind::spm_bpe);
  source.normalizer = hostile_normalizers()[1].steps;
  const Taken taken = encode(Built(source), "a");
  ASSERT_FALSE(taken.ids);
  EXPECT_EQ(error_of(taken.ids).code, ErrorCode::unsupported);
  EXPECT_STREQ(error_of(taken.ids).sentence,
               "this tokenizer takes more than 1048832 steps to read a text of 1 bytes: its tables make more work than "
               "any text should");
}

/// Tokens of every length up to the greatest, each of which the text goes along with.
std::vector<TokenizerSource::Token> rows_of_a(TokenType type, std::size_t from, const char* end = "") {
  std::vector<TokenizerSource::Token> tokens;
  for (std::size_t n = from; n + std::strlen(end) <= tokn::kMaxTokenBytes; n += n < 64 ? 1 : 61) {
    tokens.push_back({repeated("a", n) + end, -static_cast<float>(n % 7), type});
  }
  return tokens;
}

TEST(Work, OfEveryModelIsBounded) {
  struct Model {
    const char* name;
    TokenizerSource source;
    bool refuses;
  };
  std::vector<Model> models{
      {"unigram", source_of(TokenizerKind::unigram, rows_of_a(TokenType::normal, 2)), true},
      {"unigram, deep", source_of(TokenizerKind::unigram, {{repeated("a", 1023) + "c", 0}}), true},
      {"unigram, words", source_of(TokenizerKind::unigram, {{"a b", 0}, {"aa", 0}}), false},
      {"wordpiece", source_of(TokenizerKind::wordpiece, {{repeated("a", 1023) + "c", 0}}), true},
      {"spm_bpe", source_of(TokenizerKind::spm_bpe, rows_of_a(TokenType::normal, 2)), false},
      {"spm_bpe, words", source_of(TokenizerKind::spm_bpe, {{"a b", 0}, {"aa", 0}, {"a ", 0}}), false},
      {"byte_bpe", source_of(TokenizerKind::byte_bpe, {{"aa"}, {"aaa"}, {"aaaa"}, {"ba"}}), false},
      {"added", source_of(TokenizerKind::byte_bpe, rows_of_a(TokenType::user_defined, 2, "c")), true},
      {"control", source_of(TokenizerKind::spm_bpe, rows_of_a(TokenType::control, 900, "c")), true},
      {"fragments", source_of(TokenizerKind::spm_bpe, {{"b", 0, TokenType::user_defined}}), false},
  };
  models[3].source.max_word = 1000;
  models[3].source.tokens[1].text = "\u2581a";
  models[3].source.tokens.push_back({"a"});
  models[6].source.merges = {{"b", "a"}, {"a", "a"}, {"aa", "a"}, {"aa", "aa"}, {"aaa", "a"}};
  models[9].source.tokens.erase(models[9].source.tokens.begin() + 2);
  models[9].source.normalizer = times(8, NormalizerStep{nfkd, "", ""});
  for (const Model& model : models) {
    const Built built(model.source);
    ASSERT_EQ(built.problem, "") << model.name;
    std::size_t n_refused = 0;
    for (const std::string& text : prompts()) n_refused += expect_bounded(built, text, model.name) ? 1 : 0;
    // Longer than any scratch, so that there are windows.
    for (const std::string& part :
         {std::string("a"), std::string("ab"), std::string("aab"), repeated("a", 999) + " "}) {
      n_refused += expect_bounded(built, repeated(part, 50'000), model.name) ? 1 : 0;
    }
    EXPECT_EQ(n_refused > 0, model.refuses) << model.name;
  }
}

/// Many ranges of plain text, in which more user-defined tokens come by turns than are kept in mind.
TEST(Work, OfPlainTextIsBounded) {
  std::vector<TokenizerSource::Token> tokens;
  for (int i = 0; i < 64; ++i) tokens.push_back({"<" + std::to_string(i) + ">", 0, TokenType::user_defined});
  const Built built(source_of(TokenizerKind::spm_bpe, tokens));
  for (const std::size_t n_messages : {std::size_t{1}, std::size_t{2000}}) {
    std::string text;
    std::vector<TextRange> plain;
    for (std::size_t i = 0; i < n_messages; ++i) {
      text += repeated("x", 200);  // the template's own
      const std::size_t begin = text.size();
      for (std::size_t k = 0; k < 8000 / n_messages; ++k) text += tokens[(i + k * 16 + k / 4) % tokens.size()].text;
      plain.push_back({begin, text.size()});
    }
    EXPECT_EQ(expect_bounded(built, text, "plain", plain), n_messages > 1);
  }
}

/// Vocabularies by chance, of letters that overlap: nothing in them is cut where it could be.
TEST(Work, OfRandomVocabulariesIsBounded) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const auto kind = static_cast<TokenizerKind>(1 + round % 3);
    std::vector<TokenizerSource::Token> tokens;
    for (std::uint32_t n = 1 + random() % 20; n > 0; --n) {
      std::string text;
      for (std::uint32_t length = 2 + random() % (random() % 4 == 0 ? 1000 : 8); length > 0; --length) {
        text += random() % 16 == 0 ? 'b' : 'a';
      }
      tokens.push_back({text, -static_cast<float>(random() % 50)});
    }
    const Built built(source_of(kind, tokens));
    if (built.problem.empty()) {
      std::string text;
      while (text.size() < 40'000) text += random() % 200 == 0 ? 'b' : 'a';
      expect_bounded(built, text, "round " + std::to_string(round));
    }
  }
}

TEST(Work, OfEveryPretokenizerIsLinear) {
  for (const Pretokenizer& each : kPretokenizers) {
    for (const char* part : {" ",  "\n",  " \n", "a",    "A",       "Aa", "\u0301",  "1",   ".",      "\u4f60",
                             " a", "  .", "'",   "\x01", "\u0301A", "'l", " \u0301", "\t ", "\u2028", "a\u0301"}) {
      for (const char* end : {"", "x", "\x01", "\n", "A"}) {
        const std::string text = repeated(part, 20'000) + end;
        Cutter cutter(each.id, text);
        std::size_t at = 0;
        while (at < text.size()) at = cutter.next();
        EXPECT_EQ(at, text.size());
        EXPECT_LE(cutter.steps(), 40 * text.size()) << each.name << " " << part;
      }
    }
  }
}

/// White space between words before much white space at the end: where the end begins is found once, not for each.
TEST(Work, OfWhiteSpaceAtTheEndIsLinear) {
  for (const Pretokenizer& each : kPretokenizers) {
    for (const char* part : {"a ", "1 ", "\u4f60 ", "1\t"}) {
      const std::string text = repeated(part, 10'000) + std::string(10'000, ' ');
      Cutter cutter(each.id, text);
      for (std::size_t at = 0; at < text.size();) at = cutter.next();
      EXPECT_LE(cutter.steps(), 40 * text.size()) << each.name << " " << part;
    }
  }
}

/// A run that nothing cuts takes as many steps for each byte at every length.
TEST(Work, OfLongRunsIsLinear) {
  TokenizerSource bytes = source_of(TokenizerKind::byte_bpe, {{"ab"}, {"abab"}});
  bytes.merges = {{"a", "b"}, {"ab", "ab"}};
  const TokenizerSource words = source_of(TokenizerKind::spm_bpe, {{"ab", -1}, {"abab", -2}});
  for (const TokenizerSource& source : {bytes, words}) {
    const Built built(source);
    for (const std::size_t size : {10'000u, 100'000u, 1'000'000u}) {
      const Taken taken = encode(built, repeated("ab", size));
      ASSERT_TRUE(taken.ids) << taken.ids.error().sentence;
      EXPECT_EQ(*taken.ids, size / 4);
      EXPECT_LE(taken.steps, 8 * size);
    }
  }
}

/// Counts the questions of the loop that merges: at most three for each byte, whatever the answers are.
TEST(Work, OfMergesIsLinear) {
  struct Rules {
    std::mt19937 random{6};
    std::size_t keys = 0, joins = 0;
    std::uint32_t key(std::uint32_t, std::uint32_t) {
      ++keys;
      return random() % 8 == 0 ? kNoMerge : random() % 100;
    }
    void join(std::uint32_t, std::uint32_t) { ++joins; }
  };
  for (const std::uint32_t n : {2u, 1000u, 60'000u}) {
    std::vector<std::uint32_t> ids(n), keys(n);
    std::vector<std::uint16_t> next(n), prev(n), tree(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      next[i] = static_cast<std::uint16_t>(i + 1);
      prev[i] = static_cast<std::uint16_t>(i - 1);
    }
    MergeRun run{ids.data(), keys.data(), next.data(), prev.data(), tree.data(), n};
    Rules rules;
    merge_all(run, rules);
    EXPECT_LT(rules.joins, n);
    EXPECT_LE(rules.keys, std::size_t{3} * n);
    EXPECT_GE(rules.joins, n / 2);
  }
}

TEST(Work, OfRealTokenizersIsFarBelowTheBound) {
  const std::string shared = source_dir() + "/../shared/data/";
  const std::string prose = exists(shared + "text/wiki.test.raw")
                                ? read_file(shared + "text/wiki.test.raw").substr(0, 200'000)
                                : repeated("The king said 12345 it's\n\n  so. ", 100'000);
  std::vector<std::string> texts{prose};
  for (const char* part : {" ", "\n", "=", "-", "\u2581", "\u0915\u094D\u0937", "\u4F60\u597D", "<td>"}) {
    texts.push_back(repeated(part, 50'000));
  }
  std::vector<TokenizerSource> sources{from_tokenizer_json(source_dir() + "/models/stories/tokenizer.json")};
  for (const char* name : {"llama-spm", "llama-bpe", "qwen2", "deepseek-coder"}) {
    const std::string path = shared + "tokenizers/ggml-vocab/ggml-vocab-" + name + ".gguf";
    if (exists(path)) sources.push_back(from_gguf(path));
  }
  for (const TokenizerSource& source : sources) {
    const Built built(source);
    ASSERT_EQ(built.problem, "");
    for (const std::string& text : texts) {
      const Taken taken = encode(built, text);
      EXPECT_TRUE(taken.ids) << taken.ids.error().sentence;
      EXPECT_LE(taken.steps, 30 * text.size()) << text.substr(0, 3);
    }
  }
}

TEST(Work, EndsWhenTheCallerWantsNoMore) {
  const Built built(source_of(TokenizerKind::spm_bpe));
  const std::string text = repeated("ab ", 1'000'000);
  std::atomic<bool> cancel{false};
  const std::uint64_t whole = encode(built, text, {}, &cancel).steps;
  cancel = true;
  const Taken taken = encode(built, text, {}, &cancel);
  ASSERT_FALSE(taken.ids);
  EXPECT_EQ(error_of(taken.ids).code, ErrorCode::cancelled);
  EXPECT_LE(taken.steps, 100'000u);
  EXPECT_GT(whole, 1'000'000u);
  EXPECT_TRUE(encode(built, "ab", {}, &cancel).ids);  // which takes no time
}

}  // namespace
}  // namespace qsf::test
