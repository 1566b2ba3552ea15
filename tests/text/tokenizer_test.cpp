// Ids against those of independent implementations.
#include "qsf/text/tokenizer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "qsf/base/utf8.h"
#include "tests/support/error_of.h"
#include "tests/support/paths.h"
#include "text/normalizer.h"
#include "text/pretokenizer.h"
#include "text/tokn.h"
#include "vocabularies.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using nlohmann::json;

const std::string kRoot = source_dir();
const std::string kShared = kRoot + "/../shared/data/tokenizers/";

json load(const std::string& path) { return json::parse(read_file(path)); }

void expect_ids(const Built& built, const std::string& text, bool special, const Ids& wanted) {
  const Result<Ids> ids = built.encode(text, special);
  ASSERT_TRUE(ids) << ids.error().sentence << "\ntext: " << json(text);
  EXPECT_EQ(*ids, wanted) << "text: " << json(text);
}

TEST(Pretokenizers, CutWhereHuggingFaceCuts) {
  const json vectors = load(kRoot + "/tests/text/data/pretokenizers.json");
  for (const Pretokenizer& each : kPretokenizers) {
    const json& steps = vectors.at("steps").at(std::string(each.name));
    for (std::size_t i = 0; i < steps.size(); ++i) EXPECT_EQ(each.steps[i], steps[i].get<std::string>()) << each.name;
    const json& cuts = vectors.at("cuts").at(std::string(each.name));
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const std::string text = vectors.at("texts")[i][0];
      std::vector<std::size_t> ends;
      Cutter cutter(each.id, text);
      for (std::size_t at = 0; at < text.size();) ends.push_back(at = cutter.next());
      EXPECT_EQ(ends, cuts[i].get<std::vector<std::size_t>>()) << each.name << " " << json(text);
    }
  }
}

TEST(ByteBpe, GoldenPromptsOfTheFixtures) {
  for (const char* name : {"llama", "llama3-rope", "mistral", "qwen2", "qwen3"}) {
    const std::string folder = kRoot + "/tests/data/" + name;
    const Built built(from_tokenizer_json(folder + "/tokenizer.json"));
    ASSERT_EQ(built.problem, "");
    const json golden = load(folder + "/golden.json");
    ASSERT_FALSE(golden.at("prompts").empty());
    for (const json& prompt : golden.at("prompts")) {
      expect_ids(built, prompt.at("text"), true, prompt.at("ids"));
    }
  }
}

TEST(ByteBpe, StoriesModel) {
  const Built built(from_tokenizer_json(kRoot + "/models/stories/tokenizer.json"));
  ASSERT_EQ(built.problem, "");
  const json golden = load(kRoot + "/models/stories/golden.json");
  for (const json& prompt : golden.at("prompts")) expect_ids(built, prompt.at("prompt"), true, prompt.at("token_ids"));
  for (const json& vector : load(kRoot + "/tests/text/data/stories.json")) {
    expect_ids(built, vector[0], true, vector[1]);
    expect_ids(built, vector[0], false, vector[2]);
    const std::string text = vector[0];
    EXPECT_EQ(built.decode(vector[2].get<Ids>()), text) << vector[0];
  }
}

/// Characters of every length and kind, as many of ASCII as of the others.
std::string random_text(std::mt19937& random) {
  std::string text;
  for (std::uint32_t n = random() % 24; n > 0; --n) {
    constexpr std::uint32_t kBelow[]{0x80, 0x80, 0x80, 0x800, 0x3100, 0x10000, 0x110000};
    std::uint32_t code = random() % kBelow[random() % std::size(kBelow)];
    if (code >= 0xD800 && code < 0xE000) code = ' ';
    if (code < 0x80) {
      text += static_cast<char>(code);
      continue;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    text += static_cast<char>((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | code >> (6 * more));
    for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  }
  return text;
}

TEST(ByteBpe, GivesTheTextBackWithEveryPretokenizer) {
  TokenizerSource source = from_tokenizer_json(kRoot + "/models/stories/tokenizer.json");
  for (const Pretokenizer& each : kPretokenizers) {
    source.pattern.clear();
    for (const std::string_view step : each.steps) {
      if (!step.empty()) source.pattern.append(source.pattern.empty() ? 0 : 1, '\n').append(step);
    }
    const Built built(source);
    ASSERT_EQ(built.problem, "");
    std::mt19937 random(5);
    for (int i = 0; i < 10000; ++i) {
      const std::string text = random_text(random);
      const Result<Ids> ids = built.encode(text);
      ASSERT_TRUE(ids) << ids.error().sentence;
      ASSERT_EQ(built.decode(*ids), text) << each.name;
    }
  }
}

TEST(NormalForms, AreThoseOfHuggingFace) {
  using enum NormalizerOp;
  const std::map<std::string, std::vector<NormalizerStep>> rows{
      {"nfc", {{nfc, {}, {}}}},
      {"nfd", {{nfd, {}, {}}}},
      {"nfkc", {{nfkc, {}, {}}}},
      {"nfkd", {{nfkd, {}, {}}}},
      {"lowercase", {{lowercase, {}, {}}}},
      {"strip", {{nfd, {}, {}}, {strip_marks, {}, {}}}},
      {"texts", {{prepend, {}, "x "}, {replace, "ab", "b"}, {replace, " ", "\u2581"}}},
      {"bert",
       {{clean, {}, {}}, {space_ideographs, {}, {}}, {nfd, {}, {}}, {strip_accents, {}, {}}, {lowercase, {}, {}}}},
      {"bert-cased", {{clean, {}, {}}}},
  };
  TokenizerSource source = from_tokenizer_json(kRoot + "/models/stories/tokenizer.json");
  std::string last;
  std::vector<std::byte> section;
  std::span<const std::byte> steps;
  for (const json& vector : load(kRoot + "/tests/text/data/normal_forms.json")) {
    if (vector[0] != last) {
      last = vector[0];
      source.normalizer = rows.at(last);
      Result<std::vector<std::byte>> built = build_tokenizer(source);
      ASSERT_TRUE(built) << built.error().sentence;
      section = std::move(*built);
      const auto header = load_le<tokn::Header>(section.data());
      steps = std::span(section).subspan(section.size() - header.blob_size - header.normalizer_size,
                                         header.normalizer_size);
    }
    const std::string text = vector[1];
    TextWork work(text.size());
    Normalizer normalizer(steps, text, work);
    std::string normal;
    char bytes[4];
    for (char32_t c = 0; normalizer.next(c);) normal.append(bytes, utf8::encode(c, bytes));
    EXPECT_EQ(normal, vector[2].get<std::string>()) << last << " " << json(text);
    EXPECT_FALSE(normalizer.failed());
  }
}

TEST(NormalForms, LongTextsInParts) {
  TokenizerSource source = from_tokenizer_json(kRoot + "/models/stories/tokenizer.json");
  const Built plain(source);
  source.normalizer = {{NormalizerOp::nfc, {}, {}}};
  const Built composed(source);
  std::string apart, whole;
  while (apart.size() < 300000) {
    apart += "cafe\u0301 noir,\n  \n and more \n";
    whole += "caf\u00e9 noir,\n  \n and more \n";
  }
  const Result<Ids> a = composed.encode(apart), b = plain.encode(whole);
  ASSERT_TRUE(a) << a.error().sentence;
  ASSERT_TRUE(b) << b.error().sentence;
  EXPECT_EQ(*a, *b);
  std::string line;
  while (line.size() < 100000) line += "e\u0301";
  EXPECT_EQ(error_of(composed.encode(line)).code, ErrorCode::unsupported);
  std::string marks = "e";
  for (int i = 0; i < 200; ++i) marks += "\u0301";
  EXPECT_EQ(error_of(composed.encode(marks)).code, ErrorCode::bad_text);
}

TEST(SpmBpe, SmallVocabulary) {
  const json data = load(kRoot + "/tests/text/data/sentencepiece.json");
  TokenizerSource source{
      .kind = TokenizerKind::spm_bpe, .pattern = "", .add_space_prefix = true, .tokens = {}, .merges = {}};
  for (const json& token : data.at("tokens")) {
    source.tokens.push_back({token[0], token[1], static_cast<TokenType>(token[2].get<int>())});
  }
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  EXPECT_TRUE(built.tokenizer.strips_leading_space());
  for (const json& vector : data.at("vectors")) {
    expect_ids(built, vector[0], false, vector[1]);
    std::string text = vector[0];
    for (std::size_t at = 0; (at = text.find("\u2581", at)) != std::string::npos;) text.replace(at, 3, 1, ' ');
    if (!text.empty()) text.insert(0, 1, ' ');
    EXPECT_EQ(built.decode(vector[1].get<Ids>()), text);
  }
}

// Metaspace with prepend_scheme "first", as transformers writes it: ids are those of its tokenizers.
TEST(SpmBpe, APrefixOnce) {
  for (const bool once : {true, false}) {
    const TokenizerSource source{
        .kind = TokenizerKind::spm_bpe,
        .pattern = "",
        .prefix_unless_space = true,
        .prefix_once = once,
        .add_space_prefix = true,
        .tokens = {{"<unk>", 0, TokenType::unknown}, {"<s>", 0, TokenType::control}, {"▁"}, {"a"}, {"▁a", 1}, {"b"}},
        .merges = {}};
    const Built built(source);
    ASSERT_EQ(built.problem, "");
    const std::uint32_t after = once ? 3 : 4;
    expect_ids(built, "a<s>a b", true, {4, 1, after, 2, 5});
    expect_ids(built, "<s>a", true, {1, after});
    expect_ids(built, "<s> a", true, {1, 4});
    expect_ids(built, " a", true, {4});
    expect_ids(built, "<s><s>a", true, {1, 1, after});
  }
}

/// Pairs of files that llama.cpp tests its tokenizers with.
void expect_ggml_vectors(const Built& built, const std::string& name) {
  ASSERT_EQ(built.problem, "") << name;
  const std::string path = kShared + "ggml-vocab/ggml-vocab-" + name + ".gguf";
  const std::string inputs = read_file(path + ".inp");
  std::istringstream outputs(read_file(path + ".out"));
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::size_t n = 0;
  for (std::size_t at = 0; at < inputs.size(); ++n) {
    const std::size_t end = std::min(inputs.find(kBetween, at), inputs.size());
    const std::string text = inputs.substr(at, end - at);
    at = end + kBetween.size();
    std::string line;
    ASSERT_TRUE(std::getline(outputs, line)) << name;
    std::istringstream numbers(line);
    expect_ids(built, text, false, Ids(std::istream_iterator<std::uint32_t>(numbers), {}));
  }
  EXPECT_GT(n, 40u) << name;
}

class SharedData : public testing::Test {
 protected:
  void SetUp() override {
    if (!exists(kShared + "gpt2/gpt2_vocab.json")) GTEST_SKIP() << "no further vocabularies in " << kShared;
  }
};

TEST_F(SharedData, Gpt2) {
  expect_ggml_vectors(Built(from_gguf(kShared + "ggml-vocab/ggml-vocab-gpt-2.gguf")), "gpt-2");
  const std::string folder = kShared + "gpt2/";
  expect_ggml_vectors(Built(from_gpt2_files(folder + "gpt2_vocab.json", folder + "gpt2_merges.txt", "gpt-2")), "gpt-2");
}

TEST_F(SharedData, Llama3) {
  const std::string folder = kShared + "llama3/";
  expect_ggml_vectors(
      Built(from_gpt2_files(folder + "llama3.2_encoder.json", folder + "llama3.2_vocab.bpe", "llama-bpe")),
      "llama-bpe");
}

TEST_F(SharedData, ByteLevelOfGguf) {
  for (const char* name : {"starcoder", "refact", "mpt", "falcon", "deepseek-coder", "deepseek-llm"}) {
    expect_ggml_vectors(Built(from_gguf(kShared + "ggml-vocab/ggml-vocab-" + name + ".gguf")), name);
  }
}

TEST_F(SharedData, Llama2AndPhi3) {
  for (const char* name : {"llama-spm", "phi-3"}) {
    expect_ggml_vectors(Built(from_gguf(kShared + "ggml-vocab/ggml-vocab-" + name + ".gguf")), name);
  }
}

}  // namespace
}  // namespace qsf::test
