// Models that make embeddings: GGUF names, sentence-transformers' files, Gemma's and Qwen's as they are published.
#include <filesystem>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/support.h"

namespace qsf::test {
namespace {

using Json = nlohmann::json;

const std::string kBert = kSource + "/tests/data/bert";

GgufWriter bert_gguf(std::uint32_t pooling) {
  GgufWriter out;
  out.text("general.architecture", "bert");
  out.u32("bert.block_count", 4);
  out.u32("bert.context_length", 512);
  out.u32("bert.embedding_length", 128);
  out.u32("bert.feed_forward_length", 256);
  out.u32("bert.attention.head_count", 4);
  out.f32("bert.attention.layer_norm_epsilon", 1e-12f);
  out.flag("bert.attention.causal", false);
  out.u32("bert.pooling_type", pooling);
  for (const auto& [name, weights] : hugging_face_weights(kBert)) {
    if (name.starts_with("pooler.")) continue;
    Bytes data;
    for (const float value : weights.values) put(data, value);
    std::vector<std::uint64_t> shape{weights.cols};
    if (weights.rows > 1) shape.push_back(weights.rows);
    out.tensor(gguf_encoder_name(name), GgmlType::f32, shape, std::move(data));
  }
  return out;
}

convert::Options exact() {
  convert::Options options;
  options.matrices = FormatId::f32;
  return options;
}

TEST(Encoders, BertIsTheSameFromGguf) {
  const Folder folder;
  write_bytes(folder.path("model.gguf"), bert_gguf(2).file());
  const Written is = convert(folder.path("model.gguf"), exact()), from = convert(kBert, exact());
  ASSERT_FALSE(from.weights.empty());
  EXPECT_EQ(is.weights.size(), from.weights.size());
  for (const auto& [key, weights] : from.weights) {
    ASSERT_TRUE(is.weights.contains(key)) << role_name(key.second);
    EXPECT_EQ(is.weights.at(key).values, weights.values) << role_name(key.second);
  }
  EXPECT_EQ(is.layers().kinds, from.layers().kinds);
  EXPECT_EQ(is.layers().model.pooling, Pooling::first);
  EXPECT_EQ(from.layers().model.pooling, Pooling::mean);
  EXPECT_EQ(is.layers().model.headless, 1u);
}

TEST(Encoders, APoolingThatGgufKnowsAndTheEngineDoesNotIsRefused) {
  const Folder folder;
  write_bytes(folder.path("model.gguf"), bert_gguf(4).file());
  const Error error = convert_error(folder.path("model.gguf"));
  EXPECT_NE(std::string(error.sentence).find("the pooling 4 (bert.pooling_type)"), std::string::npos) << error.sentence;
}

TEST(Encoders, TheSectionBehindTheLayersMayBeEmpty) {
  const Written file = convert(kBert, exact());
  for (const TensorEntry& tensor : file.tables.tensors) EXPECT_LE(tensor.stage, 4u);
  EXPECT_EQ(file.tables.header.flags & kFlagTied, 0u);
  EXPECT_EQ(file.tables.header.final_offset, file.tables.layers.back().offset);
  // Only the first row of the types of tokens is ever used.
  const Weights& bias = file.weights.at({1, Role::stream_bias});
  const Weights types = hugging_face_weights(kBert).at("embeddings.token_type_embeddings.weight");
  ASSERT_EQ(types.rows, 2u);
  EXPECT_EQ(bias.values, std::vector<float>(types.values.begin(), types.values.begin() + types.cols));
  EXPECT_FALSE(file.weights.contains({2, Role::stream_bias}));
}

TEST(Encoders, RobertasPostProcessorAddsItsTokens) {
  for (const char* type : {"BertProcessing", "RobertaProcessing"}) {
    const Folder folder;
    copy_folder(kSource + "/tests/data/roberta", folder.path());
    const Bytes bytes = read_bytes(folder.path("tokenizer.json"));
    const char* text = reinterpret_cast<const char*>(bytes.data());
    Json tokenizer = Json::parse(text, text + bytes.size());
    tokenizer["post_processor"] = {{"type", type}, {"sep", {"</s>", 2}}, {"cls", {"<s>", 7}}};
    write_text(folder.path("tokenizer.json"), tokenizer.dump());
    const Result<convert::LoadedModel> model = convert::open_model(folder.path(), true);
    ASSERT_TRUE(model) << model.error().sentence;
    ASSERT_TRUE(model->tokenizer);
    EXPECT_TRUE(model->tokenizer->add_bos && model->tokenizer->add_eos);
    EXPECT_EQ(model->tokenizer->bos, 7u);
    EXPECT_EQ(model->tokenizer->eos, 2u);
  }
}

struct Module {
  const char* path;
  const char* type;
};

void write_modules(const Folder& folder, std::initializer_list<Module> modules) {
  Json list = Json::array();
  for (const auto& [path, type] : modules) {
    list.push_back(
        {{"idx", list.size()}, {"path", path}, {"type", std::string("sentence_transformers.models.") + type}});
  }
  write_text(folder.path("modules.json"), list.dump());
}

/// A copy of a model of tests/data as sentence-transformers writes one, with this configuration of its pooling.
void sentence_model(const Folder& folder, const std::string& from, const Json& pooling) {
  copy_folder(kSource + "/tests/data/" + from, folder.path());
  std::filesystem::create_directories(folder.path("1_Pooling"));
  write_text(folder.path("1_Pooling/config.json"), pooling.dump());
  write_modules(folder, {{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_Normalize", "Normalize"}});
}

TEST(Encoders, PoolingAndNormalizationAreTakenFromTheModelsOwnFiles) {
  struct Case {
    Json pooling;
    Pooling expected;
  };
  for (const Case& c :
       {Case{{{"pooling_mode_cls_token", true}, {"pooling_mode_mean_tokens", false}}, Pooling::first},
        Case{{{"pooling_mode_mean_tokens", true}}, Pooling::mean},
        Case{{{"pooling_mode_lasttoken", true}}, Pooling::last}, Case{{{"pooling_mode", "cls"}}, Pooling::first}}) {
    const Folder folder;
    sentence_model(folder, "bert", c.pooling);
    const ModelKind model = convert(folder.path(), exact()).layers().model;
    EXPECT_EQ(model.pooling, c.expected) << c.pooling;
    EXPECT_EQ(model.normalize, 1u);
  }
}

TEST(Encoders, ModulesThatTheEngineDoesNotHaveAreRefusedByName) {
  const auto sentence = [](const Json& pooling, std::initializer_list<Module> modules) {
    const Folder folder;
    sentence_model(folder, "bert", pooling);
    if (modules.size() != 0) write_modules(folder, modules);
    return std::string(convert_error(folder.path()).sentence);
  };
  const Json mean{{"pooling_mode_mean_tokens", true}};
  EXPECT_NE(sentence({{"pooling_mode_max_tokens", true}}, {}).find("pooling_mode_max_tokens"), std::string::npos);
  EXPECT_NE(sentence({{"pooling_mode_mean_tokens", true}, {"pooling_mode_cls_token", true}}, {}).find("2 ways"),
            std::string::npos);
  EXPECT_NE(sentence(Json::object(), {}).find("0 ways"), std::string::npos);
  EXPECT_NE(sentence(mean, {{"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_CNN", "CNN"}}).find("models.CNN"),
            std::string::npos);
  EXPECT_NE(sentence(mean, {{"", "Transformer"}, {"2_Normalize", "Normalize"}}).find("Normalize"), std::string::npos);
  EXPECT_NE(sentence(mean, {{"", "Transformer"}, {"../bert", "Pooling"}}).find("no"), std::string::npos);
}

/// As llama.cpp writes it of a model whose head is its embedding.
TEST(Encoders, AGgufFileWithAPoolingAndNoHeadMakesEmbeddingsOnly) {
  const ModelKind model = convert(kSource + "/tests/data/gguf/qwen3-embedding.gguf", exact()).layers().model;
  EXPECT_EQ(model.headless, 1u);
  EXPECT_EQ(model.pooling, Pooling::last);
  EXPECT_EQ(model.normalize, 1u);
}

/// What a template puts behind a text that is embedded, whatever ends a text that is generated.
TEST(Encoders, TheEndOfATextIsTheTokenizersTemplates) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/qwen3-embedding", folder.path());
  Json config = read_config(folder.path());
  ASSERT_EQ(config["eos_token_id"], 1);
  config["eos_token_id"] = 7;
  write_text(folder.path("config.json"), config.dump());
  EXPECT_EQ(convert(folder.path(), exact()).tables.header.eos, 1u);
}

const std::string kGemma = kSource + "/tests/data/gemma-embedding";

/// The product in double precision, of the matrices that lie in the model's own files.
TEST(Encoders, DenseModulesBecomeTheirProduct) {
  const Written file = convert(kGemma, exact());
  const Weights first = hugging_face_weights(kGemma + "/2_Dense").at("linear.weight"),
                second = hugging_face_weights(kGemma + "/3_Dense").at("linear.weight");
  const Weights& dense = file.weights.at({file.tables.header.n_layers + 1, Role::dense});
  ASSERT_EQ(dense.rows, second.rows);
  ASSERT_EQ(dense.cols, first.cols);
  for (std::uint32_t r = 0; r < dense.rows; ++r) {
    for (std::uint32_t c = 0; c < dense.cols; ++c) {
      double sum = 0;
      for (std::uint32_t i = 0; i < first.rows; ++i) {
        sum += double{second.values[r * second.cols + i]} * double{first.values[i * first.cols + c]};
      }
      EXPECT_EQ(dense.values[r * dense.cols + c], static_cast<float>(sum));
    }
  }
}

TEST(Encoders, OtherDenseModulesAreRefusedByName) {
  const auto sentence = [](const char* key, const Json& value) {
    const Folder folder;
    copy_folder(kGemma, folder.path());
    Json config = read_config(folder.path("2_Dense"));
    config[key] = value;
    write_text(folder.path("2_Dense/config.json"), config.dump());
    return std::string(convert_error(folder.path()).sentence);
  };
  EXPECT_NE(sentence("activation_function", "torch.nn.modules.activation.Tanh").find("activation.Tanh"),
            std::string::npos);
  EXPECT_NE(sentence("bias", true).find("bias"), std::string::npos);
  const auto with_modules = [](std::initializer_list<Module> modules) {
    const Folder folder;
    copy_folder(kGemma, folder.path());
    write_modules(folder, modules);
    return std::string(convert_error(folder.path()).sentence);
  };
  const Module text{"", "Transformer"}, pooling{"1_Pooling", "Pooling"}, wide{"2_Dense", "Dense"};
  EXPECT_NE(with_modules({text, pooling, wide}).find("160 values"), std::string::npos);
  EXPECT_NE(with_modules({text, pooling, wide, wide}).find("2_Dense/linear.weight"), std::string::npos);
  EXPECT_NE(with_modules({text, pooling, {"4_Dense", "Dense"}}).find("4_Dense/config.json is missing"),
            std::string::npos);
  EXPECT_NE(with_modules({text, wide, pooling}).find("models.Dense"), std::string::npos);
}

/// A checkpoint of a body by itself: its names lack "model.".
void write_body(const Folder& folder) {
  const Bytes whole = read_bytes(folder.path("model.safetensors"));
  std::uint64_t size = 0;
  std::memcpy(&size, whole.data(), sizeof size);
  Json header = Json::parse(reinterpret_cast<const char*>(whole.data()) + 8,
                            reinterpret_cast<const char*>(whole.data()) + 8 + size);
  Json renamed = Json::object();
  for (const auto& [name, entry] : header.items()) {
    renamed[name.starts_with("model.") ? name.substr(6) : name] = entry;
  }
  std::string text = renamed.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  Bytes out;
  put<std::uint64_t>(out, text.size());
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), at, at + text.size());
  out.insert(out.end(), whole.begin() + 8 + static_cast<std::ptrdiff_t>(size), whole.end());
  write_bytes(folder.path("model.safetensors"), out);
}

TEST(Encoders, ABodyThatWasSavedByItselfIsRead) {
  const Folder folder;
  sentence_model(folder, "qwen2", {{"pooling_mode_lasttoken", true}});
  write_body(folder);
  const Written file = convert(folder.path(), exact()), whole = convert(kSource + "/tests/data/qwen2", exact());
  EXPECT_EQ(file.layers().model.pooling, Pooling::last);
  EXPECT_EQ(file.layers().kinds, whole.layers().kinds);
  EXPECT_EQ(file.layers().model.headless, 1u);
  ASSERT_EQ(file.weights.size(), whole.weights.size());
  for (const auto& [key, weights] : whole.weights) EXPECT_EQ(file.weights.at(key).values, weights.values);
}

TEST(Encoders, GemmaThatSeesBothWaysHasHalfTheWindowToEachSide) {
  const Folder folder;
  sentence_model(folder, "gemma3", {{"pooling_mode_mean_tokens", true}});
  const LayerTableBuilder causal = convert(folder.path(), exact()).layers();
  Json config = read_config(folder.path());
  config["use_bidirectional_attention"] = true;
  write_text(folder.path("config.json"), config.dump());
  const LayerTableBuilder both = convert(folder.path(), exact()).layers();
  ASSERT_EQ(both.kinds.size(), causal.kinds.size());
  bool windows = false;
  for (std::size_t i = 0; i < both.kinds.size(); ++i) {
    EXPECT_EQ(causal.kinds[i].bidirectional, 0u);
    EXPECT_EQ(both.kinds[i].bidirectional, 1u);
    if (causal.kinds[i].window == 0) continue;
    windows = true;
    EXPECT_EQ(both.kinds[i].window, causal.kinds[i].window / 2 + 1);
  }
  EXPECT_TRUE(windows);
  EXPECT_EQ(both.model.headless, 1u);
}

/// As published models have it: keys of 2024, and no list of layers.
TEST(Encoders, ModernBertsOlderConfigurationSaysTheSame) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/modernbert", folder.path());
  const LayerTableBuilder expected = convert(folder.path(), exact()).layers();
  Json config = read_config(folder.path());
  for (const char* key : {"layer_types", "rope_parameters"}) config.erase(key);
  config["global_rope_theta"] = 160000.0;
  config["local_rope_theta"] = 10000.0;
  write_text(folder.path("config.json"), config.dump());
  const LayerTableBuilder layers = convert(folder.path(), exact()).layers();
  EXPECT_EQ(layers.kinds, expected.kinds);
  EXPECT_EQ(layers.of_layer, expected.of_layer);
  EXPECT_EQ(expected.kinds[1].window, 9u);
  EXPECT_EQ(expected.kinds[1].rope_theta, 10000.0f);
  EXPECT_EQ(expected.kinds[0].rope_theta, 160000.0f);
}

}  // namespace
}  // namespace qsf::test
