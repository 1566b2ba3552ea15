// The layer for further tokens of a source: kept under its own roles, and without it a model converts as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/safetensors_file.h"

namespace qsf::test {
namespace {

using nlohmann::json;

StoredTensor numbers(const std::vector<std::uint64_t>& shape, float first) {
  StoredTensor out{"F32", shape, {}};
  std::uint64_t n = 1;
  for (const std::uint64_t extent : shape) n *= extent;
  for (std::uint64_t i = 0; i < n; ++i) put(out.data, first + static_cast<float>(i % 97) / 128);
  return out;
}

/// A fixture whose last layers become those that guess.
class GuessLayer {
 public:
  explicit GuessLayer(const std::string& fixture, std::uint32_t n_guessing = 1) {
    copy_folder(kData + fixture, folder_.path());
    tensors_ = read_tensors(folder_.path("model.safetensors"));
    config_ = read_config(folder_.path());
    n_layers = config_["num_hidden_layers"].get<std::uint32_t>() - n_guessing;
    dim = config_["hidden_size"].get<std::uint64_t>();
    config_["num_hidden_layers"] = n_layers;
    config_["num_nextn_predict_layers"] = n_guessing;
    write_text(folder_.path("config.json"), config_.dump());
    for (std::uint32_t i = 0; i < n_guessing; ++i) {
      const std::string layer = "model.layers." + std::to_string(n_layers + i) + ".";
      tensors_[layer + "enorm.weight"] = numbers({dim}, 1);
      tensors_[layer + "hnorm.weight"] = numbers({dim}, 2);
      tensors_[layer + "eh_proj.weight"] = numbers({dim, 2 * dim}, 3);
      tensors_[layer + "shared_head.norm.weight"] = numbers({dim}, 4);
      tensors_[layer + "embed_tokens.weight"] = tensors_.at("model.embed_tokens.weight");
      tensors_[layer + "shared_head.head.weight"] = tensors_.at("model.embed_tokens.weight");
    }
    write();
  }

  const std::string& path() const { return folder_.path(); }
  /// Removes a tensor of the first layer that guesses.
  void remove(const std::string& name) {
    ASSERT_EQ(tensors_.erase("model.layers." + std::to_string(n_layers) + "." + name), 1u) << name;
    write();
  }
  std::vector<std::string> warnings() const {
    const Result<convert::LoadedModel> model = convert::open_model(path(), true);
    EXPECT_TRUE(model) << model.error().sentence;
    return model ? model->warnings : std::vector<std::string>();
  }

  std::uint32_t n_layers = 0;  // of the text
  std::uint64_t dim = 0;

 private:
  void write() const { write_tensors(folder_.path("model.safetensors"), tensors_); }

  Folder folder_;
  StoredTensors tensors_;
  json config_;
};

const convert::Options kExact{FormatId::f32, Compression::none, 0};

TEST(GuessLayer, IsTheLastLayerOfTheFile) {
  for (const char* const fixture : {"llama", "glm4-moe", "deepseek-v3"}) {
    const GuessLayer model(fixture);
    const Written file = convert(model.path(), kExact), whole = convert(kData + fixture, kExact);
    const std::uint32_t stage = model.n_layers + 1;
    EXPECT_EQ(file.tables.header.n_layers, stage) << fixture;
    EXPECT_EQ(file.layers().model.guess_layer, 1u) << fixture;
    EXPECT_EQ(file.layers().of_layer, whole.layers().of_layer) << fixture;
    const float firsts[] = {1, 2, 3, 4};
    const Role roles[] = {Role::guess_token_norm, Role::guess_state_norm, Role::guess_join, Role::guess_norm};
    for (std::size_t i = 0; i < 4; ++i) {
      const Weights& weights = file.weights.at({stage, roles[i]});
      ASSERT_EQ(weights.values.size(), model.dim * (roles[i] == Role::guess_join ? 2 * model.dim : 1)) << fixture;
      for (std::size_t w = 0; w < weights.values.size(); ++w) {
        ASSERT_EQ(weights.values[w], firsts[i] + static_cast<float>(w % 97) / 128) << fixture << " " << w;
      }
    }
    // All others are the tensors of the layer that it was, and of the text.
    for (const auto& [place, weights] : whole.weights) {
      EXPECT_EQ(file.weights.at(place).values, weights.values) << fixture << " " << place.first;
    }
    EXPECT_EQ(file.weights.size(), whole.weights.size() + 4) << fixture;
    EXPECT_EQ(model.warnings(),
              std::vector<std::string>{"2 tensors of copies in the layer that guesses further tokens are left out: "
                                       "embed_tokens.weight (1), shared_head.head.weight (1)"});
  }
}

// Qwen's layer has names of its own, and config.json may not state it. It attends, whatever the last layer does.
TEST(GuessLayer, StandsApartInQwen) {
  for (const char* const fixture : {"qwen3.5", "qwen3.5-moe", "qwen3-next"}) {
    for (const bool ends_with_state : {false, true}) {
      const Folder folder;
      copy_folder(kData + fixture, folder.path());
      StoredTensors tensors = read_tensors(folder.path("model.safetensors"));
      json config = read_config(folder.path());
      const Written whole = convert(folder.path(), kExact);
      std::uint32_t n = whole.tables.header.n_layers;
      const std::uint64_t dim = whole.tables.header.dim;
      const std::string last = "model.layers." + std::to_string(n - 1) + ".";
      for (const auto& [name, tensor] : StoredTensors(tensors)) {
        if (name.starts_with(last)) tensors["mtp.layers.0." + name.substr(last.size())] = tensor;
      }
      tensors["mtp.pre_fc_norm_embedding.weight"] = numbers({dim}, 1);
      tensors["mtp.pre_fc_norm_hidden.weight"] = numbers({dim}, 2);
      tensors["mtp.fc.weight"] = numbers({dim, 2 * dim}, 3);
      tensors["mtp.norm.weight"] = numbers({dim}, 4);
      if (ends_with_state) {
        std::erase_if(tensors, [&](const auto& tensor) { return tensor.first.starts_with(last); });
        json& text = config.contains("text_config") ? config["text_config"] : config;
        text["num_hidden_layers"] = --n;
        text["layer_types"].erase(n);
        text["layer_types"][0] = "full_attention";
        for (const auto& [name, tensor] : StoredTensors(tensors)) {
          if (name.starts_with("model.layers.0.linear_attn.")) tensors.erase(name);
          if (name.starts_with("mtp.layers.0.self_attn.")) tensors["model.layers.0." + name.substr(13)] = tensor;
        }
        write_text(folder.path("config.json"), config.dump());
      }
      for (const auto& [name, tensor] : StoredTensors(tensors)) {
        if (!ends_with_state || !name.starts_with("mtp.")) continue;
        tensors["model." + name] = tensor;
        tensors.erase(name);
      }
      write_tensors(folder.path("model.safetensors"), tensors);
      const Written file = convert(folder.path(), kExact);
      EXPECT_EQ(file.tables.header.n_layers, n + 1) << fixture;
      EXPECT_EQ(file.layers().model.guess_layer, 1u) << fixture;
      const std::uint32_t stage = n + 1, attends = whole.tables.header.n_layers;
      std::size_t equal = 0;
      for (const auto& [place, weights] : whole.weights) {
        if (place.first != attends) continue;
        EXPECT_EQ(file.weights.at({stage, place.second}).values, weights.values) << fixture;
        ++equal;
      }
      EXPECT_GT(equal, 9u) << fixture;
      const float firsts[] = {2, 3, 5};  // norms are stored less one
      const Role norms[] = {Role::guess_token_norm, Role::guess_state_norm, Role::guess_norm};
      for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(file.weights.at({stage, norms[i]}).values.at(0), firsts[i]);
      EXPECT_EQ(file.weights.at({stage, Role::guess_join}).values.at(5), 3 + 5.0f / 128) << fixture;
    }
  }
}

// A layer that is like none of the text's cannot be read, and the model is read without it.
TEST(GuessLayer, IsLeftOutIfNoLayerIsLikeIt) {
  const Folder folder;
  copy_folder(kData + "qwen3.5", folder.path());
  StoredTensors tensors = read_tensors(folder.path("model.safetensors"));
  tensors["mtp.fc.weight"] = numbers({8, 16}, 3);
  tensors["mtp.layers.0.self_attn.q_proj.weight"] = numbers({8, 8}, 3);
  write_tensors(folder.path("model.safetensors"), tensors);
  const Result<convert::LoadedModel> model = convert::open_model(folder.path(), true);
  ASSERT_TRUE(model) << model.error().sentence;
  EXPECT_FALSE(model->config.guess_layer);
  EXPECT_EQ(model->warnings,
            std::vector<std::string>{"2 tensors of heads that guess further tokens are left out: mtp (2)"});
}

TEST(GuessLayer, OnlyTheFirstIsKept) {
  const GuessLayer model("llama", 2);
  const Written file = convert(model.path(), kExact);
  EXPECT_EQ(file.tables.header.n_layers, model.n_layers + 1);
  EXPECT_EQ(file.layers().model.guess_layer, 1u);
  const std::string second = "model.layers." + std::to_string(model.n_layers + 1);
  ASSERT_EQ(model.warnings().size(), 2u);
  EXPECT_EQ(model.warnings()[1], "15 tensors of heads that guess further tokens are left out: " + second + " (15)");
}

TEST(GuessLayer, ANameThatIsMissingIsNamed) {
  for (const char* const name : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight", "mlp.up_proj.weight"}) {
    GuessLayer model("llama");
    model.remove(name);
    const Error error = convert_error(model.path());
    EXPECT_EQ(error.code, ErrorCode::bad_input);
    EXPECT_NE(std::strstr(error.sentence, name), nullptr) << error.sentence;
  }
  GuessLayer model("llama");
  model.remove("eh_proj.weight");
  const Written file = convert(model.path(), kExact);  // nothing joins: the layer is left out
  EXPECT_EQ(file.tables.header.n_layers, model.n_layers);
  EXPECT_EQ(file.layers().model.guess_layer, 0u);
}

TEST(GuessLayer, OfAGguf) {
  const Folder folder;
  std::map<std::string, Weights> expected;
  GgufWriter writer = gguf_of(kLlama, GgmlType::f16, expected);
  const Written whole = convert(kLlama, kExact);
  const std::uint32_t n = whole.tables.header.n_layers, dim = whole.tables.header.dim;
  writer.u32("llama.nextn_predict_layers", 1);
  const std::string layer = "blk." + std::to_string(n - 1) + ".nextn.";
  writer.tensor(layer + "enorm.weight", GgmlType::f32, {dim}, numbers({dim}, 1).data);
  writer.tensor(layer + "hnorm.weight", GgmlType::f32, {dim}, numbers({dim}, 2).data);
  writer.tensor(layer + "eh_proj.weight", GgmlType::f32, {2 * dim, dim}, numbers({dim, 2 * dim}, 3).data);
  writer.tensor(layer + "shared_head_norm.weight", GgmlType::f32, {dim}, numbers({dim}, 4).data);
  write_bytes(folder.path("model.gguf"), writer.file());
  const Written file = convert(folder.path("model.gguf"), {});
  EXPECT_EQ(file.tables.header.n_layers, n);
  EXPECT_EQ(file.layers().model.guess_layer, 1u);
  const Weights& join = file.weights.at({n, Role::guess_join});
  EXPECT_EQ(join.rows, dim);
  EXPECT_EQ(join.cols, 2 * dim);
  EXPECT_EQ(join.values.at(5), 3 + 5.0f / 128);
  EXPECT_EQ(file.weights.at({n, Role::attn_q}).values.size(), whole.weights.at({n, Role::attn_q}).values.size());
}

TEST(GuessLayer, IsReadBackFromGgufAndQsf) {
  const GuessLayer model("llama");
  const Folder folder;
  const Result<convert::LoadedModel> loaded = convert::open_model(model.path(), true);
  ASSERT_TRUE(loaded) << loaded.error().sentence;
  convert::Options options = kExact;
  options.gguf = true;
  const auto summary = convert_file(*loaded, options, folder.path("model.gguf"));
  ASSERT_TRUE(summary) << summary.error().sentence;
  const Written direct = convert(model.path(), kExact);
  write_bytes(folder.path("model.qsf"), direct.file);
  for (const char* const name : {"model.gguf", "model.qsf"}) {
    const Written back = convert(folder.path(name), {});
    EXPECT_TRUE(back.layers().model == direct.layers().model) << name;
    ASSERT_EQ(back.weights.size(), direct.weights.size()) << name;
    for (const auto& [place, weights] : direct.weights) EXPECT_EQ(back.weights.at(place).values, weights.values);
  }
}

}  // namespace
}  // namespace qsf::test
