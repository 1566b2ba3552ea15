// Values of recipes that are made of several of the configuration's, and settings of RoPE in config.json.
#include <gtest/gtest.h>

#include <cmath>

#include "converter/gguf_writer.h"
#include "converter/model/layer_types.h"
#include "converter/readers/inputs.h"
#include "converter/recipes/recipe_json.h"
#include "converter/recipes/settings.h"
#include "converter/support.h"
#include "qsf/base/try.h"

namespace qsf::test {
namespace {

using convert::Naming;
using nlohmann::json;

/// Returns the value that a recipe's key has in a configuration.
Result<double> value_of(const char* key, const json& value, Naming naming, const json& config) {
  QSF_LET(recipe, convert::read_recipe(json{{"name", "toy"}, {"layer", {{key, value}}}}, "toy.json"));
  QSF_LET(rules, convert::resolve(recipe, naming, convert::lookup_in(config), "config"));
  return *rules.every.front().value.number;
}

double known(const char* key, const json& value, Naming naming, const json& config) {
  const Result<double> found = value_of(key, value, naming, config);
  EXPECT_TRUE(found) << found.error().sentence;
  return found ? *found : -1;
}

TEST(RecipeValues, OneNumberTimesAnother) {
  const json width{{"config", "width"}, {"times", "n"}, {"gguf", "inner"}, {"gguf_times", "count"}};
  EXPECT_EQ(known("shared_dim", width, Naming::hugging_face, {{"width", 40}, {"n", 3}}), 120);
  EXPECT_EQ(known("shared_dim", width, Naming::hugging_face, {{"width", 40}}), 40);
  EXPECT_EQ(known("shared_dim", width, Naming::hugging_face, {{"width", 40}, {"n", 0}}), 0);
  EXPECT_EQ(known("shared_dim", width, Naming::gguf, {{"inner", 24}, {"count", 2}, {"n", 9}}), 48);
  EXPECT_FALSE(value_of("shared_dim", width, Naming::hugging_face, {{"width", 1048576}, {"n", 2}}));
  EXPECT_FALSE(value_of("shared_dim", width, Naming::hugging_face, {{"width", 40}, {"n", "two"}}));
}

TEST(RecipeValues, OneNumberOverAnotherAndOverARoot) {
  const json width{{"config", "width"}, {"over", "n"}, {"power", -1}, {"gguf", 256}, {"gguf_over", "size"}};
  EXPECT_EQ(known("residual_scale", width, Naming::hugging_face, {{"width", 40}, {"n", 10}}), 0.25);
  EXPECT_EQ(known("residual_scale", width, Naming::gguf, {{"size", 64}, {"width", 9}, {"n", 3}}), 4);
  for (const json& n : {json(), json(0), json("two")}) {
    EXPECT_FALSE(value_of("residual_scale", width, Naming::hugging_face, {{"width", 40}, {"n", n}}));
  }
  const json depth{{"config", "depth"}, {"times", "n"}, {"gguf", 6}, {"gguf_times", "count"}, {"times_power", -0.5}};
  EXPECT_EQ(known("residual_scale", depth, Naming::hugging_face, {{"depth", 3}, {"n", 16}}), 0.75);
  EXPECT_EQ(known("residual_scale", depth, Naming::gguf, {{"count", 4}}), 3);
  EXPECT_FALSE(value_of("residual_scale", depth, Naming::hugging_face, {{"depth", 3}, {"n", 0}}));
}

TEST(RecipeValues, AKeyInAnObject) {
  const json growth{{"config", "rope.growth"}, {"default", 0}};
  EXPECT_EQ(known("query_growth", growth, Naming::hugging_face, {{"rope", {{"growth", 0.5}}}}), 0.5);
  EXPECT_EQ(known("query_growth", growth, Naming::hugging_face, {{"rope.growth", 0.25}}), 0.25);
  EXPECT_EQ(known("query_growth", growth, Naming::hugging_face, {{"rope", 7}}), 0);
  EXPECT_EQ(known("query_growth", growth, Naming::hugging_face, {{"growth", 0.5}}), 0);
}

TEST(RecipeValues, AListOfTheSameNumberIsThatNumber) {
  const json used{{"config", "used"}};
  EXPECT_EQ(known("experts_used", used, Naming::hugging_face, {{"used", {8, 8, 8}}}), 8);
  EXPECT_FALSE(value_of("experts_used", used, Naming::hugging_face, {{"used", {8, 6, 8}}}));
  EXPECT_FALSE(value_of("experts_used", used, Naming::hugging_face, {{"used", json::array()}}));
}

TEST(RecipeValues, AProbabilityAsAQuantileOfTheNormalDistribution) {
  const json cut{{"config", "sparsity"}, {"gguf", "scale"}, {"quantile", true}};
  const auto quantile = [&](double p) { return known("gate_cut", cut, Naming::hugging_face, {{"sparsity", p}}); };
  EXPECT_NEAR(quantile(0.95), 1.6448536269514722, 1e-14);
  EXPECT_NEAR(quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(quantile(0.9999), 3.719016485455709, 1e-11);
  EXPECT_EQ(quantile(0), 0);
  for (const double p : {-0.1, 0.3, 0.5, 1.0, 2.0}) {
    const auto found = value_of("gate_cut", cut, Naming::hugging_face, {{"sparsity", p}});
    ASSERT_FALSE(found) << p;
    EXPECT_EQ(found.error().code, ErrorCode::unsupported);
  }
  EXPECT_EQ(known("gate_cut", cut, Naming::gguf, {{"scale", 1.5}}), 1.5);
  EXPECT_EQ(known("gate_cut", cut, Naming::gguf, {{"scale", -INFINITY}}), 0);
}

TEST(RecipeValues, ANumberForEachLayer) {
  const json cut{{"config", "cut"}, {"by_layer", true}};
  const auto recipe = convert::read_recipe(json{{"name", "toy"}, {"layer", {{"gate_cut", cut}, {"window", 7}}}}, "t");
  ASSERT_TRUE(recipe) << recipe.error().sentence;
  const auto cuts = [&](const json& value) {
    const json config{{"cut", value}};
    const auto lists =
        convert::read_layer_lists(*recipe, Naming::hugging_face, convert::lookup_in(config), 3, "config");
    std::vector<double> out;
    for (std::size_t i = 0; lists && i < lists->size(); ++i) {
      EXPECT_EQ((*lists)[i].layers, std::vector{static_cast<std::uint32_t>(i)});
      out.push_back(*(*lists)[i].settings.at(0).value.number);
    }
    return out;
  };
  EXPECT_EQ(cuts({0.5, 0, 2}), (std::vector<double>{0.5, 0, 2}));
  EXPECT_EQ(cuts(0.5), (std::vector<double>{0.5, 0.5, 0.5}));
  EXPECT_EQ(cuts({0.5, 1}), std::vector<double>{}) << "two numbers for three layers";
  EXPECT_EQ(cuts({0.5, 1, "2"}).size(), 0u);
  EXPECT_EQ(cuts(nullptr).size(), 0u);
  const json other{{"name", "toy"}, {"model", {{"logit_cap", cut}}}};
  EXPECT_FALSE(convert::read_recipe(other, "t"));
}

TEST(RecipeValues, PositionsThatNoTextHasAreLeftOut) {
  const std::string folder = kSource + "/tests/data/roberta";
  const Written file = convert(folder, {FormatId::f32, Compression::none, 0});
  EXPECT_EQ(file.tables.header.max_seq_len, 510u);
  const Weights source = hugging_face_weights(folder).at("embeddings.position_embeddings.weight");
  const Weights& made = file.weights.at({0, Role::pos_embd});
  ASSERT_EQ(made.values.size(), std::size_t{510} * source.cols);
  EXPECT_TRUE(std::equal(made.values.begin(), made.values.end(), source.values.begin() + 2 * source.cols));
}

/// The kind of the first layer of a fixture with other RoPE parameters.
LayerKind kind_with(const std::string& fixture, const json& changes) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/" + fixture, folder.path());
  json config = read_config(folder.path());
  config.merge_patch(changes);
  write_text(folder.path("config.json"), config.dump());
  return convert(folder.path(), {}).layers().kinds.front();
}

TEST(RopeParameters, HunyuansAlphaStretchesTheBase) {
  const json alpha{{"rope_parameters", {{"rope_type", "dynamic"}, {"alpha", 1000.0}}}};
  EXPECT_NEAR(kind_with("hunyuan", alpha).rope_theta, 1e4 * std::pow(1000.0, 16.0 / 14.0), 100);
}

TEST(RopeParameters, DynamicScalingWithoutAlphaChangesNothingWithinTheContext) {
  const json dynamic{{"rope_parameters", {{"rope_type", "dynamic"}, {"factor", 6.0}}}};
  EXPECT_EQ(kind_with("hunyuan", dynamic).rope_theta, kind_with("hunyuan", json::object()).rope_theta);
}

TEST(RopeParameters, ANumberOfRotatedValuesIsAPartOfAHead) {
  EXPECT_EQ(kind_with("minimax-m2", {{"rotary_dim", 8}}).rope_dims, 8u);
  EXPECT_EQ(kind_with("minimax-m2", json::object()).rope_dims, 16u);
}

/// GGUF does not say whether Llama 4's heads are normed; llama.cpp takes the number of experts for it.
TEST(Values, AnEmptyNameStandsForAllOtherNumbers) {
  const auto normed = [](const char* key, const json& value, Naming naming) {
    const convert::Lookup lookup{.value = [&](const std::string& wanted) { return wanted == key ? value : json(4); }};
    const auto rules = convert::resolve(*convert::find_recipe("llama4"), naming, lookup, "model");
    EXPECT_TRUE(rules) << rules.error().sentence;
    LayerKind kind;
    if (rules) convert::apply_settings(rules->every, kind);
    return kind.bare_head_norm;
  };
  EXPECT_EQ(normed("expert_count", 16, Naming::gguf), 1u);
  EXPECT_EQ(normed("expert_count", 128, Naming::gguf), 0u);
  EXPECT_EQ(normed("expert_count", nullptr, Naming::gguf), 1u);
  EXPECT_EQ(normed("use_qk_norm", true, Naming::hugging_face), 1u);
  EXPECT_EQ(normed("use_qk_norm", false, Naming::hugging_face), 0u);
}

/// llama.cpp takes them for granted, and knows models without windows by a window of 0.
TEST(Values, WindowsOfLlama4InGguf) {
  const LayerTableBuilder layers = convert(kSource + "/tests/data/gguf/llama4.gguf", {}).layers();
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    const LayerKind& kind = layers.kinds[layers.of_layer[layer]];
    EXPECT_EQ(kind.window, layer == 3 ? 0u : 8192u) << layer;
    EXPECT_EQ(kind.window_aligned, layer == 3 ? 0u : 1u);
    EXPECT_EQ(kind.query_span, layer == 3 ? 8192u : 0u);
    EXPECT_EQ(kind.query_growth, layer == 3 ? 0.1f : 0.0f);
  }
  GgufWriter writer;
  writer.text("general.architecture", "llama4");
  for (const char* key : {"block_count", "embedding_length", "attention.head_count", "feed_forward_length"}) {
    writer.u32(std::string("llama4.") + key, 4);
  }
  writer.u32("llama4.context_length", 64);
  writer.u32("llama4.attention.sliding_window", 0);
  const Folder folder;
  write_bytes(folder.path("model.gguf"), writer.file());
  EXPECT_STREQ(convert_error(folder.path("model.gguf")).sentence,
               "GGUF: attention.sliding_window is 0: attention without chunks is not supported");
}

TEST(Values, LayersOfGemma3nFromBothSources) {
  for (const char* source : {"/tests/data/gemma3n", "/tests/data/gguf/gemma3n.gguf"}) {
    const LayerTableBuilder layers = convert(kSource + source, {}).layers();
    for (std::uint32_t layer = 0; layer < 4; ++layer) {
      const LayerKind& kind = layers.kinds[layers.of_layer[layer]];
      EXPECT_NEAR(kind.gate_cut, layer < 2 ? 1.6448536f : 0.0f, 5e-7) << source << layer;
      EXPECT_EQ(kind.kv_from, layer < 2 ? 0u : layer - 1) << source << layer;
      EXPECT_EQ(kind.window, layer % 2 == 0 ? 16u : 0u) << source << layer;
      EXPECT_EQ(kind.rope_theta, layer % 2 == 0 ? 1e4f : 1e6f) << source << layer;
      EXPECT_EQ(kind.streams, 4u);
      EXPECT_EQ(kind.laurel_rank, 64u);
      EXPECT_EQ(kind.attention_scale, 1.0f);
    }
  }
  const Folder folder;
  copy_folder(kSource + "/tests/data/gemma3n", folder.path());
  const json config = read_config(folder.path());
  const auto refusal = [&](const char* key, const json& value) {
    json changed = config;
    changed[key] = value;
    write_text(folder.path("config.json"), changed.dump());
    return std::string(convert_error(folder.path()).sentence);
  };
  EXPECT_EQ(refusal("activation_sparsity_pattern", nullptr),
            "config.json: \"activation_sparsity_pattern\" is missing, which the recipe gemma3n takes as gate_cut");
  EXPECT_EQ(refusal("activation_sparsity_pattern", {0.95, 0.3, 0.0, 0.0}),
            "config.json: \"activation_sparsity_pattern\" is 0.3; it must be 0, or above 0.5 and below 1");
  EXPECT_NE(refusal("activation_sparsity_pattern", {0.95, 0.0, 0.0}), "");
  EXPECT_NE(refusal("altup_active_idx", 1), "");
  EXPECT_NE(refusal("altup_num_inputs", 3), "") << "there are tensors of a fourth stream";
  EXPECT_EQ(refusal("altup_num_inputs", 5), "tensor model.altup_projections.3.weight is missing");
  EXPECT_NE(refusal("intermediate_size", {160, 160, 160, 128}), "");
}

TEST(Values, FactorsOfMiniMax) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/minimax", folder.path());
  json config = read_config(folder.path());
  const LayerTableBuilder layers = convert(folder.path(), {}).layers();
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    const LayerKind& kind = layers.kinds[layers.of_layer[layer]];
    EXPECT_EQ(kind.mixer, layer == 2 ? Mixer::attention : Mixer::lightning) << layer;
    EXPECT_EQ(kind.stream_scale, layer == 2 ? 2.5f : 3.5565588f) << layer;
    EXPECT_EQ(kind.network_stream_scale, 3.0f);
  }
  for (const char* key : {"mlp_beta_factor", "sliding_window"}) {
    json changed = config;
    changed[key] = 2;
    write_text(folder.path("config.json"), changed.dump());
    EXPECT_EQ(convert_error(folder.path()).code, ErrorCode::unsupported) << key;
  }
  for (const char* key : {"mlp_beta_factor", "linear_attn_beta_factor", "full_attn_beta_factor"}) config[key] = 1.0;
  write_text(folder.path("config.json"), config.dump());
  EXPECT_EQ(convert(folder.path(), {}).tables.header.n_layers, 4u);
}

/// The words of the code that MiniMax-Text-01 and MiniMax-M1 were published with.
TEST(Values, FirstConfigurationOfMiniMax) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/minimax", folder.path());
  json config = read_config(folder.path());
  const Bytes expected = convert(folder.path(), {}).file;
  for (const auto& [now, then] : {std::pair{"linear_attn", "layernorm_linear_attention"},
                                  {"full_attn", "layernorm_full_attention"},
                                  {"mlp", "layernorm_mlp"}}) {
    for (const char* factor : {"alpha", "beta"}) {
      const std::string key = std::string(now) + "_" + factor + "_factor";
      config[std::string(then) + "_" + factor] = config[key];
      config.erase(key);
    }
  }
  config.erase("layer_types");
  config.erase("rope_parameters");
  config.update({{"model_type", "minimax_text_01"},
                 {"architectures", {"MiniMaxText01ForCausalLM"}},
                 {"attn_type_list", {0, 0, 1, 0}},
                 {"postnorm", true},
                 {"rope_theta", 1000000},
                 {"rotary_dim", 16},
                 {"shared_intermediate_size", 0},
                 {"shared_moe_mode", "sigmoid"}});
  const auto convert_with = [&](const char* key, const json& value) {
    json changed = config;
    changed[key] = value;
    write_text(folder.path("config.json"), changed.dump());
    return folder.path();
  };
  for (const char* name : {"minimax_text_01", "minimax_m1"}) {
    EXPECT_EQ(convert(convert_with("model_type", name), {}).file, expected) << name;
  }
  EXPECT_EQ(convert(convert_with("rotary_dim", 8), {}).layers().kinds[0].rope_dims, 8u);
  for (const auto& [key, value] : {std::pair<const char*, json>{"postnorm", false},
                                   {"layernorm_mlp_beta", 0.5},
                                   {"attn_type_list", {0, 0, 2, 0}},
                                   {"attn_type_list", {0, 1}}}) {
    EXPECT_NE(convert_error(convert_with(key, value)).code, ErrorCode::none) << key << value;
  }
}

/// As in Llama 4 Scout's config.json: no wavelength is between both.
TEST(RopeParameters, Llama3WithoutAPartBetweenBothWavelengths) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/llama4", folder.path());
  json config = read_config(folder.path());
  config["rope_parameters"] = {{"rope_type", "llama3"},   {"rope_theta", 500000.0},
                               {"factor", 16.0},          {"low_freq_factor", 1.0},
                               {"high_freq_factor", 1.0}, {"original_max_position_embeddings", 8192}};
  config["no_rope_layers"] = json::array();  // one for each four layers
  config["no_rope_layer_interval"] = 2;
  config.erase("layer_types");
  write_text(folder.path("config.json"), config.dump());
  const Written file = convert(folder.path(), {});
  std::vector<float> expected;
  for (int i = 0; i < 8; ++i) {
    expected.push_back(2 * 3.14159265358979 * std::pow(500000.0, i / 8.0) > 8192 ? 16.0f : 1.0f);
  }
  EXPECT_EQ(file.section_floats(kTagRope), expected);
  const LayerTableBuilder layers = file.layers();
  for (std::uint32_t layer = 0; layer < 4; ++layer) {
    const LayerKind& kind = layers.kinds[layers.of_layer[layer]];
    const bool rotated = layer % 2 == 0;
    EXPECT_EQ(kind.window, rotated ? 32u : 0u) << layer;
    EXPECT_EQ(kind.window_aligned, rotated ? 1u : 0u);
    EXPECT_EQ(kind.rope_dims, rotated ? 16u : 0u);
    EXPECT_EQ(kind.bare_head_norm, rotated ? 1u : 0u);
    EXPECT_EQ(kind.query_span, rotated ? 0u : 16u);
  }
}

TEST(RopeParameters, YarnWithTwoScalesHasTheirQuotient) {
  const json other{{"rope_parameters", {{"mscale", 1.0}, {"mscale_all_dim", 0.5}}}};
  const double log = 0.1 * std::log(16.0);
  EXPECT_NEAR(kind_with("ministral3", other).rope_scale, (log + 1) / (0.5 * log + 1), 1e-6);
  EXPECT_EQ(kind_with("ministral3", json::object()).rope_scale, 1.0f);
}

}  // namespace
}  // namespace qsf::test
