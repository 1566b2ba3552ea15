// What is refused before a byte is written: what the engine would not run, what is stated twice and differently, what
// is too large to be what it says it is.
#include <cstring>
#include <filesystem>

#include "converter/files/json.h"
#include "converter/gguf_writer.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"
#include "native/process.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

void expect(const Error& error, ErrorCode code, const std::string& part) {
  EXPECT_EQ(error.code, code) << error.sentence;
  EXPECT_NE(std::strstr(error.sentence, part.c_str()), nullptr) << error.sentence << "\nlacks: " << part;
}

class Config : public testing::Test {
 protected:
  void SetUp() override {
    copy_folder(kLlama, folder_.path());
    config_ = read_config(folder_.path());
  }
  void write(const json& config) { write_text(folder_.path("config.json"), config.dump()); }
  void write_with(const char* key, const json& value) {
    json config = config_;
    config[key] = value;
    write(config);
    std::error_code error;
    fs::remove(folder_.path("generation_config.json"), error);
  }
  Error error_with(const char* key, const json& value) {
    write_with(key, value);
    return convert_error(folder_.path());
  }

  Folder folder_;
  json config_;
};

TEST_F(Config, WhatTheEngineRefuses) {
  for (const double epsilon : {0.0, -1e-5, 1.0, 1.5, 1e30}) {
    expect(error_with("rms_norm_eps", epsilon), ErrorCode::bad_input, "; it must be above 0 and below 1");
  }
  for (const double theta : {-1.0, 0.0, 0.5, 1.0, 1e12, 9e18}) {
    expect(error_with("rope_parameters", {{"rope_type", "default"}, {"rope_theta", theta}}), ErrorCode::bad_input,
           "; it must be above 1 and below 1e12");
  }
  for (const double factor : {4294967296.0, 1e9}) {
    expect(error_with("rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 1e4}, {"factor", factor}}),
           ErrorCode::bad_section, "must be above 0 and below 1e9");
  }
  json many = json::array();
  for (int id = 0; id < 9; ++id) many.push_back(id);
  expect(error_with("eos_token_id", many), ErrorCode::unsupported, "more than 8 end tokens");
  many.erase(8);
  write_with("eos_token_id", many);
  convert(folder_.path(), {});
}

TEST_F(Config, OldAndNewRopeKeysThatDisagree) {
  const json rope = config_["rope_parameters"];
  const double theta = rope["rope_theta"];
  for (const json& scaling :
       {json{{"type", "linear"}, {"factor", 2.0}}, json{{"rope_type", "default"}, {"rope_theta", theta + 1}}}) {
    expect(error_with("rope_scaling", scaling), ErrorCode::bad_input, "contradicts \"rope_parameters\"");
  }
  expect(error_with("rope_theta", theta * 2), ErrorCode::bad_input, "\"rope_theta\" is");
  expect(error_with("rope_scaling", {{"type", "spiral"}, {"factor", 2.0}}), ErrorCode::unsupported, "spiral");

  write(config_);
  const Bytes plain = convert(folder_.path(), {}).file;
  json same = config_;
  same["rope_scaling"] = {{"type", "default"}};
  same["rope_theta"] = theta;
  write(same);
  EXPECT_EQ(convert(folder_.path(), {}).file, plain);
  same["rope_scaling"] = nullptr;
  write(same);
  EXPECT_EQ(convert(folder_.path(), {}).file, plain);
}

TEST_F(Config, TokensThatDoNotExist) {
  expect(error_with("bos_token_id", 4000000000u), ErrorCode::bad_input, "the begin token is 4000000000");
  expect(error_with("bos_token_id", 1000000000000000000ull), ErrorCode::bad_input, "\"bos_token_id\" is 1000000000000");
  expect(error_with("eos_token_id", {1, 4000000000u}), ErrorCode::bad_input, "the end token is 4000000000");
  write_with("bos_token_id", -1);
  EXPECT_EQ(convert(folder_.path(), {}).tables.header.bos, kNoToken);
  write_with("pad_token_id", 4000000000u);
  const Result<convert::LoadedModel> model = convert::open_model(folder_.path());
  ASSERT_TRUE(model);
  ASSERT_EQ(model->warnings.size(), 1u);
  EXPECT_NE(model->warnings[0].find("padding token is 4000000000"), std::string::npos);
  EXPECT_EQ(convert(folder_.path(), {}).tables.header.pad, kNoToken);
}

class Keys : public testing::Test {
 protected:
  void SetUp() override {
    std::map<std::string, Weights> weights;
    writer_ = gguf_of(kLlama, GgmlType::f16, weights);
  }
  std::string file(const GgufWriter& writer) {
    write_bytes(folder_.path("model.gguf"), writer.file());
    return folder_.path("model.gguf");
  }
  /// The model with one key more.
  template <class Add>
  std::string with(Add add) {
    GgufWriter writer = writer_;
    add(writer);
    return file(writer);
  }

  Folder folder_;
  GgufWriter writer_;
};

TEST_F(Keys, LegacyLinearScalingIsHonoured) {
  const std::vector<float> four(16, 4.0f);
  const auto divisors = [](const std::string& path) { return convert(path, {}).section_floats(kTagRope); };
  EXPECT_EQ(divisors(with([](GgufWriter& w) { w.f32("llama.rope.scale_linear", 4); })), four);
  EXPECT_EQ(divisors(with([](GgufWriter& w) { w.f32("llama.rope.scaling.factor", 4); })), four);
  EXPECT_EQ(divisors(with([](GgufWriter& w) {
              w.f32("llama.rope.scale_linear", 4);
              w.f32("llama.rope.scaling.factor", 4);
              w.text("llama.rope.scaling.type", "linear");
            })),
            four);
  EXPECT_TRUE(divisors(with([](GgufWriter& w) { w.f32("llama.rope.scale_linear", 1); })).empty());
  Bytes twos;
  for (int i = 0; i < 16; ++i) put(twos, 2.0f);
  EXPECT_EQ(divisors(with([&](GgufWriter& w) {
              w.f32("llama.rope.scale_linear", 4);
              w.tensor("rope_freqs.weight", GgmlType::f32, {16}, twos);
            })),
            std::vector<float>(16, 8.0f));
}

TEST_F(Keys, ThatDisagree) {
  expect(convert_error(with([](GgufWriter& w) {
           w.f32("llama.rope.scale_linear", 4);
           w.f32("llama.rope.scaling.factor", 2);
         })),
         ErrorCode::bad_input, "rope.scale_linear is 4");
  expect(convert_error(with([](GgufWriter& w) {
           w.f32("llama.rope.scale_linear", 4);
           w.text("llama.rope.scaling.type", "none");
         })),
         ErrorCode::bad_input, "scaling factor of 4");
  expect(convert_error(with([](GgufWriter& w) { w.f32("llama.rope.scale_linear", 4294967296.0f); })),
         ErrorCode::bad_section, "must be above 0 and below 1e9");
}

TEST_F(Keys, OfAnotherTypeAreNotTakenForMissing) {
  expect(convert_error(with([](GgufWriter& w) { w.text("llama.rope.scale_linear", "4"); })), ErrorCode::bad_input,
         "llama.rope.scale_linear");
  expect(convert_error(with([](GgufWriter& w) { w.f32("llama.expert_count", 1.5f); })), ErrorCode::bad_input,
         "llama.expert_count");
  expect(convert_error(with([](GgufWriter& w) { w.i32s("llama.attention.sliding_window", {1, 2}); })),
         ErrorCode::bad_input, "llama.attention.sliding_window");
  expect(convert_error(with([](GgufWriter& w) { w.text("tokenizer.ggml.bos_token_id", "1"); })), ErrorCode::bad_input,
         "tokenizer.ggml.bos_token_id");
}

TEST_F(Keys, TokensThatDoNotExist) {
  expect(convert_error(with([](GgufWriter& w) { w.u32("tokenizer.ggml.bos_token_id", 4000000000u); })),
         ErrorCode::bad_input, "the begin token is 4000000000");
  expect(convert_error(with([](GgufWriter& w) { w.u32("tokenizer.ggml.eos_token_id", 4000000000u); })),
         ErrorCode::bad_input, "the end token is 4000000000");
  const std::string none = with([](GgufWriter& w) { w.u32("tokenizer.ggml.eos_token_id", kNoToken); });
  EXPECT_EQ(convert(none, {}).tables.header.eos, kNoToken);
}

TEST_F(Keys, TooManyOrTooLong) {
  const auto read = [](const GgufWriter& writer) {
    const Bytes bytes = writer.file();
    return convert::read_gguf(convert::input_of("x.gguf", bytes));
  };
  GgufWriter many;
  for (int i = 0; i < 65537; ++i) many.u32(std::to_string(i), 0);
  Result<convert::Gguf> gguf = read(many);
  ASSERT_FALSE(gguf);
  expect(error_of(gguf), ErrorCode::unsupported, "too many");
  GgufWriter long_token;
  long_token.text("tokenizer.ggml.model", "llama");
  long_token.texts("tokenizer.ggml.tokens", {"a", std::string(3073, 'b')});
  long_token.f32s("tokenizer.ggml.scores", {0, 0});
  const Bytes bytes = long_token.file();
  gguf = convert::read_gguf(convert::input_of("x.gguf", bytes));
  ASSERT_TRUE(gguf);
  const auto tokenizer = convert::read_gguf_tokenizer(*gguf);
  ASSERT_FALSE(tokenizer);
  expect(error_of(tokenizer), ErrorCode::unsupported, "token 1 is written with 3073 bytes");
}

TEST(JsonBounds, AreEachRefused) {
  const auto error_of = [](const std::string& text) {
    const Result<convert::Json> read = convert::parse_json(text, "x.json");
    EXPECT_FALSE(read);
    return read ? Error() : read.error();
  };
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(convert::parse_json(nested(64), "x"));
  expect(error_of(nested(65)), ErrorCode::bad_input, "65 deep");
  expect(error_of(std::string(1 << 20, '[')), ErrorCode::bad_input, "65 deep");
  EXPECT_TRUE(convert::parse_json('"' + std::string(4'000'000, 'a') + '"', "x"));
  expect(error_of('"' + std::string(5'000'000, 'a') + '"'), ErrorCode::bad_input, "a text of");
  expect(error_of('"' + std::string(5'000'000, '\\') + '"'), ErrorCode::bad_input, "a text of");
  expect(error_of(std::string(5'000'000, '1')), ErrorCode::bad_input, "a text of");
  std::string values = "[0";
  for (int i = 0; i < 9'000'000; ++i) values += ",0";
  expect(error_of(values + ']'), ErrorCode::bad_input, "8388609 values");
  EXPECT_EQ(*convert::parse_json(R"(["a\"],[\\", {"b": "]"}])", "x"), json::parse(R"(["a\"],[\\", {"b": "]"}])"));
}

#if !defined(QSF_SANITIZED) && !defined(_WIN32)  // a sanitizer and wine keep memory of their own beside
/// A 1 GB tokenizer.json, and one whose only text is long.
TEST_F(Config, AHugeTokenizerTakesLittleMemory) {
  const std::string path = folder_.path("tokenizer.json"), out = folder_.path("out.qsf");
  const auto refused = [&](const char* part) {
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--tokenizer", path}}) {
      std::vector<std::string> command{program("qsf-convert"), folder_.path(), out, "--quiet"};
      command.insert(command.end(), more.begin(), more.end());
      const Ran ran = measured(command);
      EXPECT_EQ(ran.code, 1);
      EXPECT_NE(ran.err.find(part), std::string::npos) << ran.err;
      EXPECT_GT(ran.peak_resident_bytes, 1u << 20);
      EXPECT_LT(ran.peak_resident_bytes, 48u << 20);
    }
  };
  write_text(path, R"({"version": ")" + std::string(64 << 20, 'a') + "\"}");
  refused("a text of");
  fs::resize_file(path, 1u << 30);
  refused("bytes of JSON are too many");
  for (const char* name : {"tokenizer.model", "other"}) {
    fs::remove(path);
    write_text(folder_.path(name), std::string("\x0a\x10xx"));
    fs::resize_file(folder_.path(name), 1u << 30);
    const Ran ran = measured({program("qsf-convert"), folder_.path(), out, "--tokenizer", folder_.path(name)});
    EXPECT_NE(ran.err.find("a tokenizer has"), std::string::npos) << ran.err;
    EXPECT_LT(ran.peak_resident_bytes, 48u << 20);
  }
}
#endif

}  // namespace
}  // namespace qsf::test
