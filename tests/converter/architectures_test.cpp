// What golden values cannot show of an architecture: layouts that no fixture has, and what GGUF leaves to the reader.
#include <cmath>
#include <cstring>
#include <filesystem>

#include "converter/readers/inputs.h"
#include "converter/recipes/recipes.h"
#include "converter/support.h"
#include "tests/file/small_file.h"

namespace qsf::test {
namespace {

using nlohmann::json;
using qsf::test::small_file;
using qsf::test::SmallFile;
using qsf::test::SmallOptions;

struct Stored {
  std::string name;
  std::uint64_t rows = 0, cols = 0;  // no rows: a vector
  std::vector<float> values = {};
};

void write_directory(const std::string& path, const json& config, const std::vector<Stored>& tensors) {
  std::filesystem::create_directories(path);
  write_text(path + "/config.json", config.dump());
  json header = json::object();
  Bytes data, file;
  for (const Stored& tensor : tensors) {
    const std::size_t begin = data.size();
    for (const float value : tensor.values) put(data, value);
    json shape = json::array({tensor.cols});
    if (tensor.rows != 0) shape = {tensor.rows, tensor.cols};
    header[tensor.name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  put_text(file, header.dump());
  file.insert(file.end(), data.begin(), data.end());
  write_bytes(path + "/model.safetensors", file);
}

void add_tensors(GgufWriter& writer, const std::vector<Stored>& tensors) {
  for (const Stored& tensor : tensors) {
    Bytes data;
    for (const float value : tensor.values) put(data, value);
    std::vector<std::uint64_t> shape{tensor.cols};
    if (tensor.rows != 0) shape.push_back(tensor.rows);
    writer.tensor(tensor.name, GgmlType::f32, shape, std::move(data));
  }
}

/// Every weight under the recipe's name of it, but those that `fused` says of.
template <class Fused>
std::vector<Stored> stored(const SmallFile& file, const SmallOptions& o, const convert::Recipe& recipe,
                           convert::Naming naming, Fused fused) {
  std::vector<Stored> out;
  for (const auto& [key, values] : file.weights) {
    const auto& [section, role] = key;
    if (fused(role)) continue;
    const std::uint32_t layer = section == 0 ? 0 : section - 1;
    const std::string name = name_of(recipe, naming, role, layer);
    EXPECT_FALSE(name.empty()) << role_name(role);
    LayerKind kind = qsf::test::usual_kind(o);
    if (o.shape) o.shape(layer < o.n_layers ? layer : 0, kind);
    const std::uint64_t cols = extent(qsf::test::small_header(o), kind, rule_of(role).cols);
    out.push_back({name, rule_of(role).matrix ? values.size() / cols : 0, cols, values});
  }
  return out;
}

bool is_qkv(Role role) { return role == Role::attn_q || role == Role::attn_k || role == Role::attn_v; }

void expect_weights(const Written& written, const SmallFile& file) {
  ASSERT_EQ(written.weights.size(), file.weights.size());
  for (const auto& [key, values] : file.weights) {
    ASSERT_TRUE(written.weights.contains(key)) << role_name(key.second);
    EXPECT_EQ(written.weights.at(key).values, values) << role_name(key.second) << " of section " << key.first;
  }
}

class Falcon : public ::testing::Test {
 protected:
  void make(std::uint32_t n_kv_heads, bool two_norms) {
    options_.n_kv_heads = n_kv_heads;
    options_.ffn_dim = 4 * options_.dim;
    options_.shape = [](std::uint32_t, LayerKind& kind) {
      kind.norm = Norm::layer_norm;
      kind.ffn = Ffn::plain;
      kind.activation = Activation::gelu_erf;
      kind.residual = Residual::parallel;
    };
    options_.optional = {Role::attn_norm_bias, Role::final_norm_bias};
    if (two_norms) options_.optional.insert(options_.optional.end(), {Role::ffn_norm, Role::ffn_norm_bias});
    file_ = small_file(options_);
    config_ = {{"model_type", "falcon"},
               {"hidden_size", options_.dim},
               {"num_hidden_layers", options_.n_layers},
               {"num_attention_heads", 4},
               {"vocab_size", 40},
               {"max_position_embeddings", 64},
               {"bos_token_id", 1},
               {"eos_token_id", 2},
               {"parallel_attn", true}};
  }
  std::vector<Stored> tensors(convert::Naming naming) const {
    return stored(file_, options_, recipe(), naming, is_qkv);
  }
  /// Rows of queries, keys and values in an order of heads: "q0 q1 k0 v0" and so on.
  Stored fused(const std::string& name, std::uint32_t layer, const std::vector<std::pair<Role, std::uint32_t>>& order) {
    Stored out{name, 0, options_.dim};
    const std::size_t size = std::size_t{options_.head_dim} * options_.dim;
    for (const auto& [role, head] : order) {
      const auto begin = file_.weights.at({layer + 1, role}).begin() + static_cast<std::ptrdiff_t>(head * size);
      out.values.insert(out.values.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
      out.rows += options_.head_dim;
    }
    return out;
  }
  static const convert::Recipe& recipe() { return *convert::find_recipe("falcon"); }
  static constexpr Role q = Role::attn_q, k = Role::attn_k, v = Role::attn_v;

  const Folder folder_;
  SmallOptions options_;
  SmallFile file_;
  json config_;
};

TEST_F(Falcon, OneHeadOfKeysLiesBehindAllQueries) {
  make(1, false);
  std::vector<Stored> all = tensors(convert::Naming::hugging_face);
  for (std::uint32_t layer = 0; layer < options_.n_layers; ++layer) {
    const std::string name = "transformer.h." + std::to_string(layer) + ".self_attention.query_key_value.weight";
    all.push_back(fused(name, layer, {{q, 0}, {q, 1}, {q, 2}, {q, 3}, {k, 0}, {v, 0}}));
  }
  config_["num_kv_heads"] = 71;  // not looked at
  write_directory(folder_.path("model"), config_, all);
  const Written written = convert(folder_.path("model"), {.matrices = FormatId::f32});
  EXPECT_EQ(written.tables.header.n_kv_heads, 1u);
  EXPECT_EQ(written.layers().kinds[0].alibi, 0u);
  EXPECT_EQ(written.layers().kinds[0].rope_dims, options_.head_dim);
  expect_weights(written, file_);
}

TEST_F(Falcon, AGroupsKeysLieBehindItsQueries) {
  make(2, true);
  std::vector<Stored> all = tensors(convert::Naming::hugging_face);
  const std::vector<std::pair<std::string, std::string>> others{{"input_layernorm", "ln_attn"},
                                                                {"post_attention_layernorm", "ln_mlp"}};
  for (Stored& tensor : all) {
    for (const auto& [from, to] : others) {
      if (const std::size_t at = tensor.name.find(from); at != std::string::npos) {
        tensor.name.replace(at, from.size(), to);
      }
    }
  }
  for (std::uint32_t layer = 0; layer < options_.n_layers; ++layer) {
    const std::string name = "transformer.h." + std::to_string(layer) + ".self_attention.query_key_value.weight";
    all.push_back(fused(name, layer, {{q, 0}, {q, 1}, {k, 0}, {v, 0}, {q, 2}, {q, 3}, {k, 1}, {v, 1}}));
  }
  config_["new_decoder_architecture"] = true;
  config_["num_kv_heads"] = 2;
  write_directory(folder_.path("model"), config_, all);
  expect_weights(convert(folder_.path("model"), {.matrices = FormatId::f32}), file_);
}

/// With two norms the first is called attn_norm_2, and attn_norm is the network's.
TEST_F(Falcon, InGgufAllQueriesLieInFront) {
  for (const bool two_norms : {false, true}) {
    options_ = {};
    make(2, two_norms);
    GgufWriter writer;
    writer.text("general.architecture", "falcon");
    writer.u32("falcon.block_count", options_.n_layers);
    writer.u32("falcon.embedding_length", options_.dim);
    writer.u32("falcon.feed_forward_length", options_.ffn_dim);
    writer.u32("falcon.attention.head_count", 4);
    writer.u32("falcon.attention.head_count_kv", 2);
    writer.u32("falcon.context_length", 64);
    writer.f32("falcon.attention.layer_norm_epsilon", 1e-5f);
    const auto is_norm = [](Role role) {
      return role == Role::attn_norm || role == Role::attn_norm_bias || role == Role::ffn_norm ||
             role == Role::ffn_norm_bias;
    };
    std::vector<Stored> all = stored(file_, options_, recipe(), convert::Naming::gguf,
                                     [&](Role role) { return is_qkv(role) || is_norm(role); });
    for (std::uint32_t layer = 0; layer < options_.n_layers; ++layer) {
      const std::string front = "blk." + std::to_string(layer) + ".";
      all.push_back(
          fused(front + "attn_qkv.weight", layer, {{q, 0}, {q, 1}, {q, 2}, {q, 3}, {k, 0}, {k, 1}, {v, 0}, {v, 1}}));
      const auto norm = [&](const char* name, Role role) {
        all.push_back({front + name, 0, options_.dim, file_.weights.at({layer + 1, role})});
      };
      norm(two_norms ? "attn_norm_2.weight" : "attn_norm.weight", Role::attn_norm);
      norm(two_norms ? "attn_norm_2.bias" : "attn_norm.bias", Role::attn_norm_bias);
      if (!two_norms) continue;
      norm("attn_norm.weight", Role::ffn_norm);
      norm("attn_norm.bias", Role::ffn_norm_bias);
    }
    add_tensors(writer, all);
    const std::string path = folder_.path("model.gguf");
    write_bytes(path, writer.file());
    const Written written = convert(path, {.matrices = FormatId::f32});
    EXPECT_EQ(written.layers().kinds[0].residual, Residual::parallel);
    expect_weights(written, file_);

    // A norm behind attention says that there is no RoPE: GGUF has no word for what there is instead.
    const std::string name = "blk.0.ffn_norm.weight";
    GgufWriter other = writer;
    add_tensors(other, {{name, 0, options_.dim, std::vector<float>(options_.dim)}});
    write_bytes(path, other.file());
    EXPECT_NE(std::strstr(convert_error(path).sentence, name.c_str()), nullptr);
  }
}

/// A GGUF file of so many layers, of Gemma's shape; the factor on its scores, 0 where it is the usual one.
float scale_of_gemma(const std::string& architecture, std::uint32_t n_layers) {
  SmallOptions o;
  o.n_layers = n_layers;
  o.dim = 48;
  o.qk_norm = architecture == "gemma3";
  o.shape = [](std::uint32_t, LayerKind& kind) { kind.norm_place = NormPosition::both; };
  const SmallFile file = small_file(o);
  GgufWriter writer;
  writer.text("general.architecture", architecture);
  const auto u32 = [&](const char* key, std::uint32_t value) { writer.u32(architecture + "." + key, value); };
  u32("block_count", n_layers);
  u32("embedding_length", o.dim);
  u32("feed_forward_length", o.ffn_dim);
  u32("attention.head_count", o.n_heads);
  u32("attention.head_count_kv", o.n_kv_heads);
  u32("attention.key_length", o.head_dim);
  u32("attention.value_length", o.head_dim);
  u32("context_length", o.max_seq_len);
  u32("attention.sliding_window", 16);
  writer.f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
  add_tensors(writer,
              stored(file, o, *convert::find_recipe(architecture), convert::Naming::gguf, [](Role) { return false; }));
  const Folder folder;
  write_bytes(folder.path("model.gguf"), writer.file());
  return convert(folder.path("model.gguf"), {}).layers().kinds[0].attention_scale;
}

// A file of the 27B models differs from the smaller ones' in the number of its layers alone, and the models in what
// scores are multiplied by: 1 / sqrt(dim / heads).
TEST(Gemma, GgufOf27BScalesScoresByTheWidth) {
  const auto by_width = static_cast<float>(1 / std::sqrt(48.0 / 4));
  EXPECT_EQ(scale_of_gemma("gemma2", 46), by_width);
  EXPECT_EQ(scale_of_gemma("gemma2", 42), 0);
  EXPECT_EQ(scale_of_gemma("gemma3", 62), by_width);
  EXPECT_EQ(scale_of_gemma("gemma3", 48), 0);
}

/// Six layers, every third without a window; the last two see keys and values of earlier ones through wider networks.
SmallOptions small_gemma4() {
  SmallOptions o;
  o.n_layers = 6;
  o.shape = [](std::uint32_t layer, LayerKind& kind) {
    const bool full = layer % 3 == 2, shared = layer >= 4;
    kind.norm_place = NormPosition::both;
    kind.window = full ? 0 : 16;
    kind.n_kv_heads = full ? 1 : 2;
    kind.head_dim = kind.rope_dims = full ? 16 : 8;
    kind.v_norm = 1;
    kind.v_from_k = full ? 1 : 0;
    kind.kv_from = !shared ? 0 : full ? 3 : 4;
    kind.ffn_dim = shared ? 96 : 48;
    kind.layer_input = 4;
  };
  o.qk_norm = true;
  o.optional = {Role::layer_scale};
  return o;
}

void expect_gemma4(const Written& written, const SmallOptions& o, const SmallFile& file) {
  expect_weights(written, file);
  const LayerTableBuilder table = written.layers();
  for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
    const LayerKind& kind = table.view().kind(layer);
    LayerKind want = qsf::test::usual_kind(o);
    o.shape(layer, want);
    EXPECT_EQ(kind.window, want.window) << layer;
    EXPECT_EQ(kind.n_kv_heads, want.n_kv_heads) << layer;
    EXPECT_EQ(kind.head_dim, want.head_dim) << layer;
    EXPECT_EQ(kind.rope_dims, want.rope_dims) << layer;
    EXPECT_EQ(kind.rope_scaled, kind.window == 0 ? 1u : 0u) << layer;
    EXPECT_EQ(kind.kv_from, want.kv_from) << layer;
    EXPECT_EQ(kind.ffn_dim, want.ffn_dim) << layer;
    EXPECT_EQ(kind.attention_scale, 1) << layer;
    if (want.kv_from == 0) {
      EXPECT_EQ(kind.v_from_k, want.v_from_k) << layer;
    }
  }
}

TEST(Gemma4, LayersShareKeysAndTakeValuesFromThem) {
  const SmallOptions o = small_gemma4();
  const SmallFile file = small_file(o);
  json types = json::array();
  for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
    types.push_back(layer % 3 == 2 ? "full_attention" : "sliding_attention");
  }
  json config = json::parse(R"({"model_type": "gemma4_text", "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_global_key_value_heads": 1, "attention_k_eq_v": true, "head_dim": 8, "global_head_dim": 16,
    "intermediate_size": 48, "use_double_wide_mlp": true, "num_kv_shared_layers": 2, "vocab_size": 40,
    "hidden_size_per_layer_input": 4, "max_position_embeddings": 64, "sliding_window": 16,
    "hidden_activation": "gelu_pytorch_tanh", "rope_parameters": {
      "full_attention": {"rope_type": "proportional", "rope_theta": 1e6, "partial_rotary_factor": 0.25},
      "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})");
  config["hidden_size"] = o.dim;
  config["num_hidden_layers"] = o.n_layers;
  config["layer_types"] = types;
  std::vector<Stored> all =
      stored(file, o, *convert::find_recipe("gemma4"), convert::Naming::hugging_face, [](Role) { return false; });
  // Checkpoints have keys and values of layers that see others'.
  all.push_back({"model.layers.4.self_attn.v_proj.weight", 16, o.dim, std::vector<float>(16 * std::size_t{o.dim})});
  const Folder folder;
  write_directory(folder.path("model"), config, all);
  const Written written = convert(folder.path("model"), {.matrices = FormatId::f32});
  expect_gemma4(written, o, file);
  std::vector<float> divisors(8, kNotTurned);
  divisors[0] = divisors[1] = 1;
  EXPECT_EQ(written.section_floats(kTagRope), divisors);

  config["enable_moe_block"] = true;
  write_directory(folder.path("mixture"), config, all);
  EXPECT_NE(std::strstr(convert_error(folder.path("mixture")).sentence, "enable_moe_block"), nullptr);
}

TEST(Gemma4, GgufListsWhatDiffersBetweenLayers) {
  const SmallOptions o = small_gemma4();
  const SmallFile file = small_file(o);
  GgufWriter writer;
  writer.text("general.architecture", "gemma4");
  const auto u32 = [&](const char* key, std::uint32_t value) { writer.u32(std::string("gemma4.") + key, value); };
  u32("block_count", o.n_layers);
  u32("embedding_length", o.dim);
  u32("attention.head_count", 4);
  u32("attention.key_length", 16);
  u32("attention.value_length", 16);
  u32("attention.key_length_swa", 8);
  u32("attention.value_length_swa", 8);
  u32("rope.dimension_count", 16);
  u32("rope.dimension_count_swa", 8);
  u32("attention.sliding_window", 16);
  u32("attention.shared_kv_layers", 2);
  u32("embedding_length_per_layer_input", 4);
  u32("context_length", o.max_seq_len);
  writer.i32s("gemma4.attention.head_count_kv", {2, 2, 1, 2, 2, 1});
  writer.i32s("gemma4.feed_forward_length", {48, 48, 48, 48, 96, 96});
  writer.i32s("gemma4.attention.sliding_window_pattern", {1, 1, 0, 1, 1, 0});
  writer.f32("gemma4.attention.layer_norm_rms_epsilon", 1e-6f);
  writer.f32("gemma4.rope.freq_base", 1e6f);
  writer.f32("gemma4.rope.freq_base_swa", 1e4f);
  std::vector<Stored> all =
      stored(file, o, *convert::find_recipe("gemma4"), convert::Naming::gguf, [](Role) { return false; });
  all.push_back({"rope_freqs.weight", 0, 8, {1, 1, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f, 1e30f}});
  add_tensors(writer, all);
  const Folder folder;
  write_bytes(folder.path("model.gguf"), writer.file());
  expect_gemma4(convert(folder.path("model.gguf"), {.matrices = FormatId::f32}), o, file);
}

}  // namespace
}  // namespace qsf::test
