// Vocabularies through the converter's readers into the engine: ids against those of independent implementations.
#include "tests/text/vocabularies.h"

#include <fstream>
#include <sstream>

#include "converter/files/local_files.h"
#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "converter/tokenizers/tokenizers.h"

namespace qsf::test {
namespace {

using nlohmann::json;
using Ids = std::vector<std::uint32_t>;

void expect_ids(const Built& built, const std::string& text, const Ids& wanted, bool special = false) {
  const Result<Ids> ids = built.encode(text, special);
  ASSERT_TRUE(ids) << ids.error().sentence << "\ntext: " << json(text);
  EXPECT_EQ(*ids, wanted) << "text: " << json(text);
}

/// Tokenizers that Hugging Face's library has trained and run (tests/text/data/make_vectors.py).
TEST(Vocabularies, OfHuggingFace) {
  const json all = json::parse(read_file(kSource + "/tests/text/data/tokenizers.json"));
  EXPECT_GE(all.size(), 4u);
  for (const auto& [name, each] : all.items()) {
    SCOPED_TRACE(name);
    const convert::Json source = convert::Json::parse(each.at("tokenizer").dump());
    const Result<TokenizerSource> read = convert::read_tokenizer_json(source, nullptr);
    ASSERT_TRUE(read) << read.error().sentence;
    const Built built(*read);
    ASSERT_EQ(built.problem, "");
    for (const json& vector : each.at("vectors")) {
      expect_ids(built, vector[0], vector[1], !each.at("tokenizer").at("added_tokens").empty());
    }
  }
}

/// Added tokens of all attributes in tokenizers of each kind.
TEST(Vocabularies, WithAddedTokensOfAllAttributes) {
  const std::string folder = kSource + "/tests/text/data/";
  const json bases = json::parse(read_file(folder + "tokenizers.json"));
  std::size_t n = 0;
  const json all = json::parse(read_file(folder + "added.json"));
  for (const auto& [name, each] : all.items()) {
    SCOPED_TRACE(name);
    json source = bases.at(name).at("tokenizer");
    source["added_tokens"] = each.at("added_tokens");
    const Result<TokenizerSource> read = convert::read_tokenizer_json(convert::Json::parse(source.dump()), nullptr);
    ASSERT_TRUE(read) << read.error().sentence;
    const Built built(*read);
    ASSERT_EQ(built.problem, "");
    for (const json& vector : each.at("vectors")) expect_ids(built, vector[0], vector[1], true);
    n += each.at("vectors").size();
  }
  EXPECT_GT(n, 1600u);
}

/// No key of a GGUF has attributes: llama.cpp knows them by names.
TEST(Vocabularies, NamesOfGgufsGiveAttributes) {
  struct Case {
    const char *name, *architecture, *pre;
    std::array<int, 6> attributes;
  };
  constexpr int kL = static_cast<int>(TokenAttribute::lstrip), kR = static_cast<int>(TokenAttribute::rstrip);
  for (const Case& each :
       {Case{"Phi 3", "phi3", "default", {}}, Case{"My Phi-3 mini", "phi3", "default", {0, 0, kR, 0, kR, kR}},
        Case{"Phi3", "phi3", "default", {0, 0, kR, 0, kR, kR}}, Case{"x", "bert", "jina-v2-code", {0, 0, 0, 0, 0, kL}},
        Case{"x", "nomic-bert-moe", "default", {0, 0, 0, 0, 0, kL}}}) {
    GgufWriter writer;
    writer.text("general.name", each.name);
    writer.text("general.architecture", each.architecture);
    writer.text("tokenizer.ggml.model", "llama");
    writer.text("tokenizer.ggml.pre", each.pre);
    writer.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "<mask>", "a"});
    writer.i32s("tokenizer.ggml.token_type", {2, 3, 1, 3, 4, 3, 1});
    writer.f32s("tokenizer.ggml.scores", {0, 0, 0, 0, 0, 0, 0});
    const Bytes bytes = writer.file();
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", bytes));
    ASSERT_TRUE(gguf) << gguf.error().sentence;
    const auto t = convert::read_gguf_tokenizer(*gguf);
    ASSERT_TRUE(t && *t) << t.error().sentence;
    for (std::size_t i = 0; i < each.attributes.size(); ++i) {
      EXPECT_EQ((*t)->tokens[i].attributes, each.attributes[i]) << each.name << ": " << (*t)->tokens[i].text;
    }
    EXPECT_EQ((*t)->tokens[6].attributes, 0);
  }
}

/// Models with a character map that SentencePiece has trained and run (scripts/make_sentencepiece_maps.py).
TEST(Vocabularies, WithCharacterMaps) {
  const std::string folder = kSource + "/tests/text/data/sentencepiece/";
  for (const char* kind : {"unigram", "bpe"}) {
    SCOPED_TRACE(kind);
    const std::string bytes = read_file(folder + kind + ".model");
    Result<TokenizerSource> read = convert::read_sentencepiece(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(read) << read.error().sentence;
    EXPECT_EQ(read->kind, std::string_view(kind) == "bpe" ? TokenizerKind::spm_bpe : TokenizerKind::unigram);
    read->add_bos = false;
    const Built built(*read);
    ASSERT_EQ(built.problem, "");
    for (const json& each : json::parse(read_file(folder + "expected.json"))) {
      expect_ids(built, each.at("text"), each.at(kind));
    }
  }
}

/// Returns a tokenizer.json of tests/text/data/precompiled.json, which stores the map once.
json precompiled(const json& all, const std::string& kind) {
  json normalizer = all.at("kinds").at(kind).at("normalizer");
  const auto fill = [&](json& step) {
    if (step.at("type") == "Precompiled") step["precompiled_charsmap"] = all.at("map");
  };
  if (normalizer.contains("normalizers")) {
    for (json& step : normalizer["normalizers"]) fill(step);
  } else {
    fill(normalizer);
  }
  return {{"added_tokens", json::array()},
          {"normalizer", normalizer},
          {"pre_tokenizer", all.at("kinds").at(kind).at("pre_tokenizer")},
          {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"byte_fallback", true}, {"vocab", all.at("vocab")}}}};
}

/// Character maps as Hugging Face's library reads them, by grapheme clusters. Bytes without a token are visible in the
/// ids, so that the ids show every character of the normal form (tests/text/data/make_vectors.py).
TEST(Vocabularies, WithPrecompiledMaps) {
  const json all = json::parse(read_file(kSource + "/tests/text/data/precompiled.json"));
  std::size_t n = 0;
  for (const auto& [name, each] : all.at("kinds").items()) {
    SCOPED_TRACE(name);
    const Result<TokenizerSource> read = convert::read_tokenizer_json(precompiled(all, name), nullptr);
    ASSERT_TRUE(read) << read.error().sentence;
    const Built built(*read);
    ASSERT_EQ(built.problem, "");
    for (const json& vector : each.at("vectors")) expect_ids(built, vector[0], vector[1]);
    n += each.at("vectors").size();
  }
  EXPECT_GT(n, 900u);
}

/// XLM-RoBERTa as it is published: a unigram with a map next to the model.
TEST(Vocabularies, OfAnXlmRobertaDirectory) {
  const json all = json::parse(read_file(kSource + "/tests/text/data/precompiled.json"));
  const Folder folder;
  copy_folder(kData + "xlm-roberta", folder.path("model"));
  write_text(folder.path("model/tokenizer.json"), precompiled(all, "joined").dump());
  const Written written = convert(folder.path("model"), {});
  const SectionEntry* const section = find_section(written.tables.sections, kTagTokenizer);
  ASSERT_NE(section, nullptr);
  const std::span<const std::byte> bytes = std::span(written.file).subspan(section->offset, section->size);
  const Result<Tokenizer> opened = Tokenizer::open(bytes, written.tables.header.vocab_size);
  ASSERT_TRUE(opened) << opened.error().sentence;
  const json& vector = all.at("kinds").at("joined").at("vectors").at(1);
  std::array<std::uint32_t, 64> ids{};
  std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
  const Result<std::uint32_t> count = opened->encode(vector[0].get<std::string>(), false, ids, scratch);
  ASSERT_TRUE(count) << count.error().sentence;
  EXPECT_EQ(Ids(ids.begin(), ids.begin() + *count), vector[1].get<Ids>());
}

class SharedVocabularies : public testing::Test {
 protected:
  void SetUp() override {
    if (!exists(kShared + "/tokenizers/gpt2/gpt2_vocab.json")) GTEST_SKIP() << "no further vocabularies in " << kShared;
  }
};

TEST_F(SharedVocabularies, EveryPairOfGgml) {
  for (const char* name : {"bert-bge", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2", "llama-spm", "mpt", "phi-3",
                           "refact", "starcoder"}) {
    SCOPED_TRACE(name);
    const std::string path = kShared + "/tokenizers/ggml-vocab/ggml-vocab-" + name + ".gguf";
    const std::string bytes = read_file(path);
    const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("vocab", std::as_bytes(std::span(bytes))));
    ASSERT_TRUE(gguf) << gguf.error().sentence;
    const auto read = convert::read_gguf_tokenizer(*gguf);
    ASSERT_TRUE(read) << read.error().sentence;
    const Built built(**read);
    ASSERT_EQ(built.problem, "");
    const std::string inputs = read_file(path + ".inp");
    std::istringstream outputs(read_file(path + ".out"));
    constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
    std::size_t n = 0;
    for (std::size_t at = 0; at < inputs.size(); ++n) {
      const std::size_t end = std::min(inputs.find(kBetween, at), inputs.size());
      std::string line;
      ASSERT_TRUE(std::getline(outputs, line));
      std::istringstream numbers(line);
      expect_ids(built, inputs.substr(at, end - at), Ids(std::istream_iterator<std::uint32_t>(numbers), {}));
      at = end + kBetween.size();
    }
    EXPECT_GT(n, 40u);
  }
}

/// llama.cpp's ids, without the begin token. White space after a special token has no ids.
TEST_F(SharedVocabularies, Phi3TakesWhiteSpaceAfterSpecialTokens) {
  const std::string bytes = read_file(kShared + "/tokenizers/ggml-vocab/ggml-vocab-phi-3.gguf");
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("vocab", std::as_bytes(std::span(bytes))));
  ASSERT_TRUE(gguf) << gguf.error().sentence;
  const auto read = convert::read_gguf_tokenizer(*gguf);
  ASSERT_TRUE(read) << read.error().sentence;
  const Built built(**read);
  expect_ids(built, "<|user|>\nSYS\nHI<|end|>\n<|assistant|>\n", {32010, 317, 21554, 13, 17628, 32007, 32001}, true);
}

TEST_F(SharedVocabularies, PlansOfTiktoken) {
  std::map<std::string, std::unique_ptr<Built>> encodings;
  for (const char* name : {"r50k_base", "p50k_base", "cl100k_base", "o200k_base"}) {
    const std::string bytes = read_file(kShared + "/tokenizers/tiktoken/" + name + ".tiktoken");
    const Result<TokenizerSource> read = convert::read_tiktoken(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(read) << name << ": " << read.error().sentence;
    encodings[name] = std::make_unique<Built>(*read);
    ASSERT_EQ(encodings[name]->problem, "");
  }
  std::ifstream plans(kShared + "/tokenizers/tiktoken/TestPlans.txt");
  const auto after = [](const std::string& line, const std::string& key) {
    EXPECT_TRUE(line.starts_with(key)) << line;
    return line.substr(std::min(line.size(), key.size()));
  };
  std::size_t n = 0;
  for (std::string line; std::getline(plans, line);) {
    if (line.empty()) continue;
    const auto encoding = encodings.find(after(line, "EncodingName: "));
    std::string sample, encoded;
    ASSERT_TRUE(std::getline(plans, sample) && std::getline(plans, encoded));
    if (encoding == encodings.end()) continue;
    const json ids = json::parse(after(encoded, "Encoded: "));
    expect_ids(*encoding->second, after(sample, "Sample: "), ids.get<Ids>());
    ++n;
  }
  EXPECT_GT(n, 100u);
}

TEST_F(SharedVocabularies, Llama3FromTiktoken) {
  const std::string bytes = read_file(kShared + "/tokenizers/llama3/tokenizer.model");
  const Result<TokenizerSource> read = convert::read_tiktoken(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(read) << read.error().sentence;
  const Built built(*read);
  ASSERT_EQ(built.problem, "");
  EXPECT_EQ(read->tokens.size(), 128256u);
  const std::string folder = kShared + "/tokenizers/llama3/";
  const Built other(from_gpt2_files(folder + "llama3.2_encoder.json", folder + "llama3.2_vocab.bpe", "llama-bpe"));
  for (const std::string text :
       {"Hello world, it's 12345 o'clock", "你好，世界 naïve   \n\n x", "aaaaaaaaaaaaaaaaaaa"}) {
    expect_ids(built, text, *other.encode(text));
  }
}

}  // namespace
}  // namespace qsf::test
