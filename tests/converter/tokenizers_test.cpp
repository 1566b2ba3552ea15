// Vocabularies from each kind of file, and damage to them.
#include "converter/tokenizers/tokenizers.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;

const std::string kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

json byte_level() {
  return {{"added_tokens",
           {{{"id", 3}, {"content", "<|end|>"}, {"special", true}},
            {{"id", 5}, {"content", "<tool>"}, {"special", false}}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}}, {"merges", {"a b"}}}}};
}

Result<TokenizerSource> read(const json& tokenizer, const json& config = nullptr) {
  return convert::read_tokenizer_json(tokenizer, config);
}

TEST(TokenizerJson, ByteLevelBpe) {
  const Result<TokenizerSource> t = read(byte_level());
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_EQ(t->kind, TokenizerKind::byte_bpe);
  EXPECT_EQ(t->pattern, kByteLevelPattern);
  ASSERT_EQ(t->tokens.size(), 6u);
  EXPECT_EQ(t->tokens[2].text, "ab");
  EXPECT_EQ(t->tokens[2].type, TokenType::normal);
  EXPECT_EQ(t->tokens[3].type, TokenType::control);
  EXPECT_EQ(t->tokens[4].type, TokenType::unused);
  EXPECT_EQ(t->tokens[5].type, TokenType::user_defined);
  ASSERT_EQ(t->merges.size(), 1u);
  EXPECT_EQ(t->merges[0], (std::pair<std::string, std::string>("a", "b")));
  EXPECT_FALSE(t->add_bos);
  EXPECT_FALSE(t->ignore_merges);
}

TEST(TokenizerJson, MergesAsPairs) {
  json j = byte_level();
  j["model"]["merges"] = json::array({json::array({"a", "b"})});
  const Result<TokenizerSource> t = read(j);
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_EQ(t->merges[0].second, "b");
}

TEST(TokenizerJson, SplitAndTemplateOfLlama3) {
  json j = byte_level();
  j["model"]["ignore_merges"] = true;
  j["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", kLlama3Pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  j["post_processor"] = {{"type", "Sequence"},
                         {"processors",
                          {{{"type", "ByteLevel"}},
                           {{"type", "TemplateProcessing"},
                            {"single", {{{"SpecialToken", {{"id", "<|end|>"}}}}, {{"Sequence", {{"id", "A"}}}}}}}}}};
  const Result<TokenizerSource> t = read(j);
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_EQ(t->pattern, kLlama3Pattern);
  EXPECT_TRUE(t->add_bos);
  EXPECT_TRUE(t->ignore_merges);
  const Result<TokenizerSource> without = read(j, {{"add_bos_token", false}});
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->add_bos);
}

TEST(TokenizerJson, DigitsThenByteLevel) {
  json j = byte_level();
  j["pre_tokenizer"] = {{"type", "Sequence"},
                        {"pretokenizers",
                         {{{"type", "Digits"}, {"individual_digits", true}},
                          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}}}};
  const Result<TokenizerSource> t = read(j);
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_EQ(t->pattern, std::string(kDigitsPattern) + "\n" + std::string(kByteLevelPattern));
}

TEST(TokenizerJson, UnsupportedKindsAreNamed) {
  struct Case {
    const char* pointer;
    json value;
    const char* part;
  };
  for (const Case& c :
       {Case{"/model/type", "WordLevel", "WordLevel"}, Case{"/model/type", "WordPiece", "ByteLevel"},
        Case{"/model/type", "Unigram", "ByteLevel"}, Case{"/model/byte_fallback", true, "ByteLevel"},
        Case{"/pre_tokenizer/type", "Metaspace", "Metaspace"},
        Case{"/pre_tokenizer/add_prefix_space", true, "add_prefix_space"}, Case{"/pre_tokenizer", nullptr, "ByteLevel"},
        Case{"/normalizer", {{"type", "Nmt"}}, "Nmt"},
        Case{"/normalizer", {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}, "Strip"},
        Case{"/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", " {3,}"}}}, {"content", " "}}, "String"},
        Case{"/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}}, "String"},
        Case{"/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "\\w+x"}}}}, "ByteLevel"},
        Case{"/model/end_of_word_suffix", "</w>", "end_of_word_suffix"}}) {
    json j = byte_level();
    j[json::json_pointer(c.pointer)] = c.value;
    const Result<TokenizerSource> t = read(j);
    ASSERT_FALSE(t) << c.pointer;
    EXPECT_EQ(error_of(t).code, ErrorCode::unsupported);
    EXPECT_NE(std::strstr(error_of(t).sentence, c.part), nullptr) << t.error().sentence;
  }
}

TEST(TokenizerJson, MetaspacePrefixes) {
  const auto source = [](const char* scheme, const json& normalizer) {
    return read(
        {{"added_tokens", {{{"id", 0}, {"content", "<s>"}, {"special", true}}}},
         {"normalizer", normalizer},
         {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", scheme}, {"split", false}}},
         {"model",
          {{"type", "BPE"},
           {"byte_fallback", true},
           {"vocab", {{"<s>", 0}, {"▁", 1}, {"a", 2}, {"▁a", 3}}},
           {"merges", json::array({"▁ a"})}}}});
  };
  struct Case {
    const char* scheme;
    bool adds, once;
  };
  for (const Case& c : {Case{"first", true, true}, Case{"always", true, false}, Case{"never", false, false}}) {
    const Result<TokenizerSource> t = source(c.scheme, nullptr);
    ASSERT_TRUE(t) << t.error().sentence;
    EXPECT_EQ(t->add_space_prefix, c.adds) << c.scheme;
    EXPECT_EQ(t->prefix_once, c.once) << c.scheme;
  }
  const Result<TokenizerSource> both = source("first", {{"type", "Prepend"}, {"prepend", "▁"}});
  ASSERT_TRUE(both) << both.error().sentence;
  EXPECT_TRUE(both->add_space_prefix && !both->prefix_once) << "the normalizer prepends to every part";
}

/// Spaces at the end are removed only together with runs of them, and if a prefix stands for those at the beginning.
TEST(TokenizerJson, StripNeedsAPrefix) {
  const json strip = {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
  const json join = {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\u2581"}};
  const auto source = [](const char* scheme, const json& steps) {
    return read({{"normalizer", {{"type", "Sequence"}, {"normalizers", steps}}},
                 {"pre_tokenizer", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}}},
                 {"model",
                  {{"type", "Unigram"},
                   {"unk_id", 0},
                   {"vocab", json::array({json::array({"<unk>", 0}), json::array({"\u2581", -1})})}}}});
  };
  const Result<TokenizerSource> both = source("always", json::array({strip, join}));
  ASSERT_TRUE(both) << both.error().sentence;
  EXPECT_TRUE(both->trim_spaces && both->normalizer.empty());
  const Result<TokenizerSource> joined = source("never", json::array({join}));
  ASSERT_TRUE(joined) << joined.error().sentence;
  EXPECT_FALSE(joined->trim_spaces);
  ASSERT_EQ(joined->normalizer.size(), 1u);
  EXPECT_EQ(joined->normalizer[0].op, NormalizerOp::join_spaces);
  for (const auto& refused : {source("never", json::array({strip, join})), source("first", json::array({strip, join})),
                              source("always", json::array({strip}))}) {
    ASSERT_FALSE(refused);
    EXPECT_NE(std::strstr(error_of(refused).sentence, "Strip"), nullptr) << error_of(refused).sentence;
  }
}

TEST(TokenizerJson, DamageGivesErrors) {
  struct Case {
    const char* pointer;
    json value;
  };
  for (const Case& c :
       {Case{"/model", 3}, Case{"/model/vocab", json::array()}, Case{"/model/vocab/a", "0"}, Case{"/model/vocab/a", -1},
        Case{"/model/vocab/a", 4294967296}, Case{"/model/vocab/a", 4000000}, Case{"/model/vocab/a", 1},
        Case{"/model/merges", "a b"}, Case{"/model/merges/0", "ab"}, Case{"/model/merges/0", "a b c"},
        Case{"/model/merges/0", 7}, Case{"/model/merges/0", json::array({"a"})}, Case{"/added_tokens", 1},
        Case{"/added_tokens/0", 1}, Case{"/added_tokens/0/id", nullptr}, Case{"/added_tokens/0/content", 1},
        Case{"/model/ignore_merges", "yes"}, Case{"/normalizer", {{"type", "Precompiled"}}},
        Case{"/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AA?A"}}}}) {
    json j = byte_level();
    j[json::json_pointer(c.pointer)] = c.value;
    const Result<TokenizerSource> t = read(j);
    ASSERT_FALSE(t) << c.pointer << " " << c.value.dump();
    EXPECT_NE(error_of(t).sentence[0], 0);
  }
  EXPECT_FALSE(read(json::array()));
  EXPECT_FALSE(read(byte_level(), {{"add_bos_token", "yes"}}));
}

// A SentencePiece model by protobuf's wire format.
class Proto {
 public:
  Proto& varint(int field, std::uint64_t value) {
    raw(static_cast<std::uint64_t>(field) << 3);
    raw(value);
    return *this;
  }
  Proto& f32(int field, float value) {
    raw(static_cast<std::uint64_t>(field) << 3 | 5);
    put(bytes_, value);
    return *this;
  }
  Proto& text(int field, const std::string& value) {
    raw(static_cast<std::uint64_t>(field) << 3 | 2);
    raw(value.size());
    for (const char c : value) put(bytes_, c);
    return *this;
  }
  Proto& message(int field, const Proto& inner) {
    return text(field, {reinterpret_cast<const char*>(inner.bytes_.data()), inner.bytes_.size()});
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  void raw(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) put(bytes_, static_cast<std::uint8_t>(value | 0x80));
    put(bytes_, static_cast<std::uint8_t>(value));
  }
  Bytes bytes_;
};

Proto sentencepiece(std::uint64_t model_type) {
  Proto p;
  p.message(1, Proto().text(1, "<unk>").f32(2, 0).varint(3, 2));
  p.message(1, Proto().text(1, "<s>").f32(2, 0).varint(3, 3));
  p.message(1, Proto().text(1, "<0x0A>").f32(2, 0).varint(3, 6));
  p.message(1, Proto().text(1, "\xe2\x96\x81t").f32(2, -1.5f));
  p.message(2, Proto().text(2, "ignored").varint(3, model_type).varint(40, 0));
  p.message(3, Proto().text(1, "identity").varint(3, 0));
  return p;
}

TEST(SentencePiece, PiecesTypesAndScores) {
  const Result<TokenizerSource> t = convert::read_sentencepiece(sentencepiece(2).bytes());
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_EQ(t->kind, TokenizerKind::spm_bpe);
  ASSERT_EQ(t->tokens.size(), 4u);
  EXPECT_EQ(t->tokens[0].type, TokenType::unknown);
  EXPECT_EQ(t->tokens[1].type, TokenType::control);
  EXPECT_EQ(t->tokens[2].type, TokenType::byte);
  EXPECT_EQ(t->tokens[3].type, TokenType::normal);
  EXPECT_EQ(t->tokens[3].text, "\xe2\x96\x81t");
  EXPECT_EQ(t->tokens[3].score, -1.5f);
  EXPECT_FALSE(t->add_space_prefix);
  EXPECT_TRUE(t->add_bos);
}

TEST(SentencePiece, BpeAndUnigramOnly) {
  const Result<TokenizerSource> unigram = convert::read_sentencepiece(sentencepiece(1).bytes());
  ASSERT_TRUE(unigram) << unigram.error().sentence;
  EXPECT_EQ(unigram->kind, TokenizerKind::unigram);
  EXPECT_TRUE(unigram->trim_spaces);
  const Result<TokenizerSource> t = convert::read_sentencepiece(sentencepiece(3).bytes());
  ASSERT_FALSE(t);
  EXPECT_EQ(error_of(t).code, ErrorCode::unsupported);
  EXPECT_NE(std::strstr(error_of(t).sentence, "word"), nullptr);
}

TEST(SentencePiece, DamagedCharacterMapsAreRefused) {
  for (const std::uint64_t model_type : {1u, 2u}) {
    Proto mapped = sentencepiece(model_type);
    mapped.message(3, Proto().text(2, "map"));
    const Result<TokenizerSource> t = convert::read_sentencepiece(mapped.bytes());
    ASSERT_TRUE(t) << t.error().sentence;
    ASSERT_EQ(t->normalizer.size(), 1u);
    EXPECT_EQ(t->normalizer[0].op, NormalizerOp::char_map);
    const Result<std::vector<std::byte>> built = build_tokenizer(*t);
    ASSERT_FALSE(built);
    EXPECT_EQ(error_of(built).code, ErrorCode::bad_tokenizer);
    EXPECT_NE(std::strstr(error_of(built).sentence, "character map of 3 bytes"), nullptr) << built.error().sentence;
  }
}

TEST(Tiktoken, RanksInOrder) {
  const auto read_text = [](const std::string& text) { return convert::read_tiktoken(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(convert::is_tiktoken(std::as_bytes(std::span("IQ== 0\n", 7))));
  EXPECT_FALSE(convert::is_tiktoken(std::as_bytes(std::span("IQ= 0\n", 6))));
  for (const char* text : {"IQ== 1000\n", "IQ== x\n", "I=== 0\n", "IQ==\n", "\x01\x02 0\n"}) {
    const Result<TokenizerSource> t = read_text(text);
    ASSERT_FALSE(t) << text;
    EXPECT_EQ(error_of(t).code, ErrorCode::bad_tokenizer);
  }
  const Result<TokenizerSource> unknown = read_text("IQ== 0\nIg== 1\n");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(error_of(unknown).code, ErrorCode::unsupported);
}

TEST(SentencePiece, DamageNeverCrashes) {
  const Bytes good = sentencepiece(2).bytes();
  std::size_t n_errors = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    n_errors += !convert::read_sentencepiece(std::span(good).first(at));
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[at] ^= static_cast<std::byte>(1 << bit);
      const Result<TokenizerSource> t = convert::read_sentencepiece(bad);
      if (!t) {
        ASSERT_NE(error_of(t).sentence[0], 0);
      }
    }
  }
  EXPECT_GT(n_errors, good.size() / 2);
}

Bytes llama2c_tokenizer(const std::vector<std::pair<float, std::string>>& tokens) {
  Bytes out;
  put<std::uint32_t>(out, 16);
  for (const auto& [score, text] : tokens) {
    put(out, score);
    put(out, static_cast<std::uint32_t>(text.size()));
    for (const char c : text) put(out, c);
  }
  return out;
}

TEST(Llama2cTokenizer, TextsAreAsSentencePieceHasThem) {
  const Bytes file =
      llama2c_tokenizer({{0, "<unk>"}, {0, "\n<s>\n"}, {0, "\n</s>\n"}, {0, "<0x00>"}, {-2.5f, " the cat"}});
  const Result<TokenizerSource> t = convert::read_llama2c_tokenizer(file);
  ASSERT_TRUE(t) << t.error().sentence;
  ASSERT_EQ(t->tokens.size(), 5u);
  EXPECT_EQ(t->tokens[1].text, "<s>");
  EXPECT_EQ(t->tokens[2].type, TokenType::control);
  EXPECT_EQ(t->tokens[3].type, TokenType::byte);
  EXPECT_EQ(t->tokens[4].text,
            "\xe2\x96\x81the\xe2\x96\x81"
            "cat");
  EXPECT_EQ(t->tokens[4].score, -2.5f);
  for (std::size_t size = 0; size < file.size(); ++size) {
    const Result<TokenizerSource> cut = convert::read_llama2c_tokenizer(std::span(file).first(size));
    const bool whole = cut && cut->tokens.size() >= 3;  // cut between two tokens: nothing can tell
    EXPECT_TRUE(!cut || whole) << size;
  }
  Bytes huge = file;
  std::memset(huge.data() + 8, 0xff, 4);
  EXPECT_FALSE(convert::read_llama2c_tokenizer(huge));
}

TEST(GgufTokenizer, WithoutANameTextsAreCutAsLlamaCppDoes) {
  for (const char* name : {"", "default", "gpt-2"}) {
    const Folder folder;
    std::map<std::string, Weights> weights;
    GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f16, weights);
    writer.text("tokenizer.ggml.model", "gpt2");
    if (*name != 0) writer.text("tokenizer.ggml.pre", name);
    std::vector<std::string> tokens;
    for (int i = 0; i < 512; ++i) tokens.push_back("t" + std::to_string(i));
    writer.texts("tokenizer.ggml.tokens", tokens);
    writer.texts("tokenizer.ggml.merges", {});
    write_bytes(folder.path("m.gguf"), writer.file());
    const Result<convert::LoadedModel> model = convert::open_model(folder.path("m.gguf"));
    ASSERT_TRUE(model) << model.error().sentence;
    EXPECT_EQ(model->tokenizer->pattern, std::string_view(name) == "gpt-2" ? "gpt-2" : "default");
    EXPECT_TRUE(build_tokenizer(*model->tokenizer));
    const auto warned = std::ranges::count_if(model->warnings, [](const std::string& warning) {
      return warning.find("tokenizer.ggml.pre") != std::string::npos;
    });
    EXPECT_EQ(warned, std::string_view(name) == "gpt-2" ? 0 : 1) << name;
  }
}

TEST(GgufTokenizer, ByteLevelWithPreset) {
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", "gpt2");
  writer.text("tokenizer.ggml.pre", "llama-bpe");
  writer.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|end|>"});
  writer.i32s("tokenizer.ggml.token_type", {1, 1, 1, 3});
  writer.texts("tokenizer.ggml.merges", {"a b"});
  const Bytes bytes = writer.file();
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", bytes));
  ASSERT_TRUE(gguf) << gguf.error().sentence;
  const auto t = convert::read_gguf_tokenizer(*gguf);
  ASSERT_TRUE(t && *t);
  EXPECT_EQ((*t)->kind, TokenizerKind::byte_bpe);
  EXPECT_EQ((*t)->pattern, "llama-bpe");
  EXPECT_TRUE((*t)->ignore_merges);
  EXPECT_TRUE((*t)->add_bos);
  EXPECT_EQ((*t)->tokens[3].type, TokenType::control);
  EXPECT_EQ((*t)->merges[0].first, "a");
}

Result<std::optional<TokenizerSource>> gguf_tokenizer(const char* model, const char* pre) {
  GgufWriter writer;
  writer.text("tokenizer.ggml.model", model);
  if (*pre != 0) writer.text("tokenizer.ggml.pre", pre);
  writer.texts("tokenizer.ggml.tokens", {"<unk>", "\u2581", "a", "b", "ab", "<0x0A>"});
  writer.i32s("tokenizer.ggml.token_type", {2, 1, 1, 1, 1, 6});
  writer.texts("tokenizer.ggml.merges", {"a b"});
  writer.flag("tokenizer.ggml.add_bos_token", false);
  const Bytes bytes = writer.file();
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", bytes));
  if (!gguf) return gguf.error();
  return convert::read_gguf_tokenizer(*gguf);
}

TEST(GgufTokenizer, MergesCharactersByRank) {
  for (const auto& [model, pre] : {std::pair("gemma4", ""), std::pair("gpt2", "granite-embed-multi-311m")}) {
    const auto t = gguf_tokenizer(model, pre);
    ASSERT_TRUE(t) << t.error().sentence;
    ASSERT_TRUE(*t);
    EXPECT_EQ((*t)->kind, TokenizerKind::spm_bpe);
    EXPECT_EQ((*t)->add_bos, *pre == 0) << "Gemma 4's files deny it";
    EXPECT_FALSE((*t)->add_space_prefix);
    EXPECT_TRUE((*t)->merges.empty());
    EXPECT_GT((*t)->tokens[4].score, (*t)->tokens[2].score);
    EXPECT_EQ((*t)->tokens[5].type, TokenType::byte);
    EXPECT_TRUE(build_tokenizer(**t));
  }
}

TEST(GgufTokenizer, RefusedNamesHaveAReason) {
  for (const auto& [pre, reason] : {std::pair("afmoe", "threes"), std::pair("superbpe", "threes"),
                                    std::pair("jais-2", "white space"), std::pair("whitespace", "characters")}) {
    const auto t = gguf_tokenizer("gpt2", pre);
    ASSERT_FALSE(t) << pre;
    EXPECT_EQ(error_of(t).code, ErrorCode::unsupported);
    EXPECT_NE(std::strstr(error_of(t).sentence, reason), nullptr) << error_of(t).sentence;
  }
}

TEST(Model, WithoutATokenizerIsConvertedWithAWarning) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/llama", folder.path());
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) std::filesystem::remove(folder.path(name));
  const Result<convert::LoadedModel> model = convert::open_model(folder.path());
  ASSERT_TRUE(model);
  ASSERT_EQ(model->warnings.size(), 1u);
  EXPECT_NE(model->warnings[0].find("token ids"), std::string::npos);
  EXPECT_FALSE(model->tokenizer);
}

TEST(Model, MayTakeAnotherFilesTokenizer) {
  const Folder folder;
  Result<convert::LoadedModel> model = convert::open_model(kSource + "/tests/data/llama", false);
  ASSERT_TRUE(model);
  EXPECT_FALSE(model->tokenizer);
  ASSERT_TRUE(convert::read_tokenizer_file(kSource + "/tests/data/qwen2/tokenizer.json", *model));
  EXPECT_EQ(model->tokenizer->kind, TokenizerKind::byte_bpe);
  write_bytes(folder.path("t.model"), sentencepiece(2).bytes());
  ASSERT_TRUE(convert::read_tokenizer_file(folder.path("t.model"), *model));
  EXPECT_EQ(model->tokenizer->kind, TokenizerKind::spm_bpe);
  EXPECT_EQ(model->tokenizer->tokens.size(), 512u);  // padded to the embedding
  write_bytes(folder.path("t.bin"), llama2c_tokenizer({{0, "<unk>"}, {0, "<s>"}, {0, "</s>"}}));
  ASSERT_TRUE(convert::read_tokenizer_file(folder.path("t.bin"), *model));
  EXPECT_EQ(model->tokenizer->tokens[1].text, "<s>");
  const Status none = convert::read_tokenizer_file(folder.path("missing"), *model);
  EXPECT_EQ(error_of(none).code, ErrorCode::io_error);
}

TEST(Model, MayNotHaveFewerRowsThanTokens) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/llama", folder.path());
  json config = read_config(folder.path());
  config["vocab_size"] = 100;
  write_text(folder.path("config.json"), config.dump());
  const Error error = convert_error(folder.path());
  EXPECT_NE(std::strstr(error.sentence, "512 tokens"), nullptr) << error.sentence;
}

/// What is looked up of a token grows with the square of its length: bounded before anything is.
TEST(Tiktoken, MergesOfLongTokensAreBounded) {
  TokenizerSource source;
  source.tiktoken = true;
  source.pattern = kByteLevelPattern;
  source.tokens = {{"a"}};
  for (int n = 0; n < 255; ++n) source.tokens.push_back({std::string(1024, 'a')});
  EXPECT_TRUE(build_tokenizer(source)) << "of 2^28 - 2^20 steps";
  source.tokens.push_back({std::string(1024, 'b')});
  source.tokens.push_back({std::string(1024, 'c')});
  const auto built = build_tokenizer(source);
  ASSERT_FALSE(built);
  EXPECT_EQ(error_of(built).code, ErrorCode::unsupported);
  EXPECT_STREQ(error_of(built).sentence, "tokenizer: finding its merges takes 269484033 steps; 268435456 are possible");
}

/// The text of the unknown token, of MB here, is compared and not copied for every token.
TEST(TokenizerJson, ALongUnknownTokenIsComparedOnly) {
  json j = byte_level();
  j["model"]["byte_fallback"] = true;
  j["model"]["unk_token"] = std::string(4'000'000, 'x');
  j["pre_tokenizer"] = nullptr;
  j["added_tokens"] = json::array();
  for (int i = 0; i < 50'000; ++i) j["model"]["vocab"]["t" + std::to_string(i)] = i + 3;
  const Result<TokenizerSource> t = read(j);
  ASSERT_TRUE(t) << t.error().sentence;
  EXPECT_TRUE(std::ranges::none_of(t->tokens, [](const auto& token) { return token.type == TokenType::unknown; }));
  j["model"]["unk_token"] = "t7";
  EXPECT_EQ(read(j)->tokens[10].type, TokenType::unknown);
}

}  // namespace
}  // namespace qsf::test
