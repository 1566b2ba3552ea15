// Damaged and unusual Hugging Face directories: an error with a sentence that names the cause.
#include "converter/readers/hugging_face/hugging_face.h"

#include <cstring>
#include <filesystem>

#include "converter/readers/hugging_face/safetensors.h"
#include "converter/readers/inputs.h"
#include "converter/recipes/recipes.h"
#include "converter/support.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;

class Directory : public testing::Test {
 protected:
  void use(const std::string& fixture) { copy_folder(kSource + "/tests/data/" + fixture, folder_.path()); }
  void SetUp() override { use("llama"); }

  void set(const std::string& key, const json& value) {
    json config = read_config(folder_.path());
    config[key] = value;
    write_text(folder_.path("config.json"), config.dump());
  }
  void expect(ErrorCode code, const char* part) {
    const Error error = convert_error(folder_.path());
    EXPECT_EQ(error.code, code) << error.sentence;
    EXPECT_NE(std::strstr(error.sentence, part), nullptr) << error.sentence;
  }
  Header converted() { return convert(folder_.path(), {}).tables.header; }

  Folder folder_;
};

TEST_F(Directory, FieldsOfTheWrongType) {
  for (const char* key : {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
                          "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "model_type",
                          "bos_token_id", "rope_parameters", "num_key_value_heads", "head_dim", "hidden_act"}) {
    for (const json& value : {json("x"), json(json::array({json::object()})), json(-1), json(1.5)}) {
      const json before = read_config(folder_.path());
      const bool fits =
          (std::strcmp(key, "hidden_act") == 0 || std::strcmp(key, "model_type") == 0) && value.is_string();
      const bool number = std::strcmp(key, "rms_norm_eps") == 0 && value.is_number();
      const bool no_token = std::strcmp(key, "bos_token_id") == 0 && value == -1;
      if (!fits && !number && !no_token) {
        // The id's first home is generation_config.json.
        std::filesystem::remove(folder_.path("generation_config.json"));
        set(key, value);
        expect(ErrorCode::bad_input, "config.json");
      }
      write_text(folder_.path("config.json"), before.dump());
    }
  }
}

TEST_F(Directory, ImpossibleSizes) {
  struct Case {
    const char* key;
    json value;
    const char* part;
  };
  for (const Case& c : {Case{"num_hidden_layers", 0, "layers"}, Case{"num_hidden_layers", 100000, "layers"},
                        Case{"num_attention_heads", 0, "head"}, Case{"num_key_value_heads", 3, "not a multiple"},
                        Case{"head_dim", 33, "rope_dims is 33; it must be even"},
                        Case{"vocab_size", 4294967295u, "vocab"}, Case{"hidden_size", 64, "[512, 128]"},
                        Case{"intermediate_size", 255, "[255, 128]"}, Case{"rms_norm_eps", 0, "epsilon"},
                        Case{"num_hidden_layers", 4, "is missing"}, Case{"num_hidden_layers", 2, "no place"}}) {
    const json before = read_config(folder_.path());
    set(c.key, c.value);
    const Error error = convert_error(folder_.path());
    EXPECT_NE(std::strstr(error.sentence, c.part), nullptr) << c.key << ": " << error.sentence;
    write_text(folder_.path("config.json"), before.dump());
  }
}

TEST_F(Directory, UnsupportedFeaturesAreNamed) {
  struct Case {
    const char* key;
    json value;
    const char* part;
  };
  for (const Case& c :
       {Case{"model_type", "lama", "did you mean llama?"}, Case{"hidden_act", "gelu_tanh", "gelu_tanh"},
        Case{"mlp_bias", true, "mlp_bias"}, Case{"rope_parameters", {{"rope_type", "spiral"}, {"factor", 4}}, "spiral"},
        Case{"quantization_config", {{"quant_method", "gptq"}}, "gptq"},
        Case{"rope_parameters", {{"chunked_attention", {{"rope_theta", 1e4}}}}, "chunked_attention"}}) {
    const json before = read_config(folder_.path());
    set(c.key, c.value);
    expect(ErrorCode::unsupported, c.part);
    write_text(folder_.path("config.json"), before.dump());
  }
}

TEST_F(Directory, AnUnknownArchitectureHasTheNearestNameAndThePageOfAll) {
  set("model_type", std::string(70, 'x'));
  expect(ErrorCode::unsupported, "docs/reference/models.md");
  for (const convert::Recipe& recipe : convert::known_recipes()) {
    set("model_type", recipe.name + "#");
    expect(ErrorCode::unsupported, ("did you mean " + recipe.name + "?").c_str());
  }
}

TEST_F(Directory, OldStyleRopeKeys) {
  json config = read_config(folder_.path());
  config.erase("rope_parameters");
  config["rope_theta"] = 123456.0;
  config["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
  write_text(folder_.path("config.json"), config.dump());
  const Written file = convert(folder_.path(), {});
  EXPECT_EQ(file.tables.header.rope_theta, 123456.0f);
  EXPECT_EQ(file.section_floats(kTagRope), std::vector<float>(16, 2.0f));
}

TEST_F(Directory, OldAndNewLlama3KeysGiveTheSameFile) {
  use("llama3-rope");
  std::filesystem::remove(folder_.path("model.safetensors.index.json"));
  const Bytes before = convert(folder_.path(), {}).file;
  json config = read_config(folder_.path());
  json rope = config["rope_parameters"];
  config.erase("rope_parameters");
  config["rope_theta"] = rope["rope_theta"];
  rope.erase("rope_theta");
  config["rope_scaling"] = rope;
  write_text(folder_.path("config.json"), config.dump());
  EXPECT_EQ(convert(folder_.path(), {}).file, before);
}

TEST_F(Directory, SeveralEndTokens) {
  json generation = {{"eos_token_id", {5, 0, 9}}};
  write_text(folder_.path("generation_config.json"), generation.dump());
  EXPECT_EQ(converted().eos, 0u);  // the one that tokenizer_config.json names
  std::filesystem::remove(folder_.path("tokenizer_config.json"));
  EXPECT_EQ(converted().eos, 5u);
}

TEST_F(Directory, HeadIsTiedWhenNothingSaysOtherwiseAndThereIsNone) {
  use("qwen2");
  json config = read_config(folder_.path());
  config.erase("tie_word_embeddings");
  write_text(folder_.path("config.json"), config.dump());
  EXPECT_NE(converted().flags & kFlagTied, 0u);
  set("tie_word_embeddings", false);
  expect(ErrorCode::bad_input, "lm_head.weight is missing");
}

TEST_F(Directory, ATiedModelsOwnHeadIsLeftOut) {
  set("tie_word_embeddings", true);
  const Written file = convert(folder_.path(), {});
  EXPECT_FALSE(file.weights.contains({4, Role::head}));
  EXPECT_NE(file.tables.header.flags & kFlagTied, 0u);
}

TEST_F(Directory, SlidingWindowInSomeLayersOnly) {
  use("qwen2");
  set("use_sliding_window", true);
  set("sliding_window", 8);
  set("max_window_layers", 1);
  json config = read_config(folder_.path());
  config.erase("layer_types");
  write_text(folder_.path("config.json"), config.dump());
  const auto windows = [this] {
    const LayerTableBuilder table = convert(folder_.path(), {}).layers();
    std::vector<std::uint32_t> out;
    for (const std::uint8_t kind : table.of_layer) out.push_back(table.kinds[kind].window);
    return out;
  };
  EXPECT_EQ(windows(), (std::vector<std::uint32_t>{0, 8, 8}));
  set("layer_types", {"sliding_attention", "full_attention", "sliding_attention"});
  EXPECT_EQ(windows(), (std::vector<std::uint32_t>{8, 0, 8}));
  set("layer_types", {"sliding_attention", "linear_attention", "sliding_attention"});
  expect(ErrorCode::unsupported, "linear_attention");
  set("layer_types", {"sliding_attention"});
  expect(ErrorCode::bad_input, "not a list of 3 layers");
}

TEST_F(Directory, MissingParts) {
  std::filesystem::remove(folder_.path("model.safetensors"));
  expect(ErrorCode::bad_input, "neither model.safetensors");
  write_text(folder_.path("pytorch_model.bin"), "x");
  expect(ErrorCode::unsupported, "pytorch_model.bin");
  std::filesystem::remove(folder_.path("config.json"));
  expect(ErrorCode::bad_input, "no config.json");
  write_text(folder_.path("config.json"), "{");
  expect(ErrorCode::bad_input, "not valid JSON");
  write_text(folder_.path("config.json"), "[]");
  expect(ErrorCode::bad_input, "not a JSON object");
}

class Sharded : public Directory {
 protected:
  void SetUp() override { use("mistral"); }
  json index() {
    const Bytes bytes = read_bytes(folder_.path("model.safetensors.index.json"));
    const char* text = reinterpret_cast<const char*>(bytes.data());
    return json::parse(text, text + bytes.size());
  }
  void write_index(const json& index) { write_text(folder_.path("model.safetensors.index.json"), index.dump()); }
};

TEST_F(Sharded, AShardIsMissing) {
  std::filesystem::remove(folder_.path("model-00002-of-00003.safetensors"));
  expect(ErrorCode::io_error, "model-00002-of-00003");
}

TEST_F(Sharded, ATensorIsNotWhereTheIndexSays) {
  json map = index();
  map["weight_map"]["lm_head.weight"] = "model-00001-of-00003.safetensors";
  write_index(map);
  expect(ErrorCode::bad_input, "lm_head.weight");
}

TEST_F(Sharded, ATensorIsInTwoFiles) {
  const std::string name = "model-00001-of-00003.safetensors", copy = "model-copy.safetensors";
  std::filesystem::copy(folder_.path(name), folder_.path(copy));
  json map = index();
  map["weight_map"]["model.embed_tokens.weight"] = copy;
  write_index(map);
  expect(ErrorCode::bad_input, ("is in " + name + ", and also in " + copy).c_str());
}

TEST_F(Sharded, FileNamesMustStayInTheDirectory) {
  for (const char* name : {"../model.safetensors", "/etc/passwd", "", "a/b"}) {
    json map = index();
    map["weight_map"]["lm_head.weight"] = name;
    write_index(map);
    expect(ErrorCode::bad_input, "not a file name");
  }
  json map = index();
  map["weight_map"] = 3;
  write_index(map);
  expect(ErrorCode::bad_input, "weight_map");
}

/// A safetensors file of one header and n bytes of data.
Bytes safetensors(const std::string& header, std::size_t n) {
  Bytes out;
  put_text(out, header);
  out.resize(out.size() + n);
  return out;
}

Error read_error(const Bytes& file) {
  std::vector<convert::LoadedTensor> tensors;
  const Status status = convert::read_safetensors(convert::input_of("x.safetensors", file), tensors);
  EXPECT_FALSE(status);
  return status.error();
}

TEST(Safetensors, DamagedHeaders) {
  struct Case {
    const char* header;
    const char* part;
  };
  for (const Case& c : {
           Case{"", "JSON"},
           Case{"[]", "object"},
           Case{R"({"a":3})", "dtype"},
           Case{R"({"a":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})", "dtype"},
           Case{R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", "data_offsets"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":["0","8"]}})", "data_offsets"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "ascending"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}})", "ends at byte"},
           Case{R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "size"},
           Case{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,8]}})", "size"},
           Case{R"({"a":{"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]}})", "size"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "cover"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],)"
                R"("data_offsets":[4,8]}})",
                "overlap"},
       }) {
    const Error error = read_error(safetensors(c.header, 8));
    EXPECT_NE(std::strstr(error.sentence, c.part), nullptr) << c.header << ": " << error.sentence;
  }
}

TEST(Safetensors, HeaderLengths) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const Bytes good = safetensors(header, 8);
  std::vector<convert::LoadedTensor> tensors;
  ASSERT_TRUE(convert::read_safetensors(convert::input_of("x", good), tensors));
  for (const std::uint64_t length : {0ull, 1ull, header.size() - 1ull, header.size() + 1ull, header.size() + 9ull,
                                     1ull << 32, 1ull << 63, ~0ull, ~0ull - 7}) {
    Bytes bad = good;
    std::memcpy(bad.data(), &length, 8);
    EXPECT_FALSE(convert::read_safetensors(convert::input_of("x", bad), tensors)) << length;
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(convert::read_safetensors(convert::input_of("x", std::span(good).first(size)), tensors)) << size;
  }
}

TEST_F(Directory, UnreadableType) {
  const Bytes file = read_bytes(folder_.path("model.safetensors"));
  std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t at = text.find("BF16");
  text.replace(at, 4, "I16 ");
  write_text(folder_.path("model.safetensors"), text);
  expect(ErrorCode::unsupported, "I16");
}

class Weight : public Directory {
 protected:
  /// Sets the first weight of q in layer 0 and gives what converting then says.
  Result<convert::Summary> with(float value, FormatId format) {
    use("llama3-rope");  // float32
    Bytes file = read_bytes(folder_.path("model.safetensors"));
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    const char* text = reinterpret_cast<const char*>(file.data()) + 8;
    const json tensors = json::parse(text, text + header);
    const std::uint64_t at = tensors["model.layers.0.self_attn.q_proj.weight"]["data_offsets"][0];
    std::memcpy(file.data() + 8 + header + at, &value, 4);
    write_bytes(folder_.path("model.safetensors"), file);
    const Result<convert::LoadedModel> model = convert::open_model(folder_.path());
    EXPECT_TRUE(model);
    return convert_file(*model, {format, Compression::none, 0}, folder_.path("out.qsf"));
  }
};

TEST_F(Weight, BeyondFp16) {
  for (const FormatId format : {FormatId::f16, FormatId::q8, FormatId::q4}) {
    const auto result = with(1e6f, format);
    ASSERT_FALSE(result);
    EXPECT_EQ(error_of(result).code, ErrorCode::bad_input);
    EXPECT_NE(std::strstr(error_of(result).sentence, "model.layers.0.self_attn.q_proj.weight"), nullptr);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.qsf")));
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out.qsf.tmp")));
  }
  EXPECT_TRUE(with(1e6f, FormatId::f32));
  EXPECT_TRUE(with(1e6f, FormatId::bf16));
  EXPECT_TRUE(with(65504.0f, FormatId::f16));
}

TEST_F(Weight, NotFinite) {
  for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const FormatId format : {FormatId::f32, FormatId::f16, FormatId::q8, FormatId::q4}) {
      const auto result = with(value, format);
      ASSERT_FALSE(result);
      EXPECT_NE(std::strstr(error_of(result).sentence, "row 0, column 0"), nullptr) << result.error().sentence;
    }
  }
}

TEST_F(Directory, AnEarlierFileSurvivesAFailure) {
  const std::string out = folder_.path("out.qsf");
  write_text(out, "earlier");
  set("num_hidden_layers", 4);
  const Result<convert::LoadedModel> model = convert::open_model(folder_.path());
  ASSERT_TRUE(model);
  EXPECT_FALSE(convert_file(*model, {}, out));
  EXPECT_EQ(read_bytes(out).size(), 7u);
}

}  // namespace
}  // namespace qsf::test
