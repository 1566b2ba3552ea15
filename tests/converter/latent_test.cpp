// Latent attention, groups of experts and states of several kinds: weights that conversion transposes and multiplies,
// and configurations that make no sense.
#include <gtest/gtest.h>

#include <cmath>

#include "converter/support.h"

namespace qsf::test {
namespace {

using nlohmann::json;

/// A copy of a fixture with other values in its configuration; null removes a key.
class Patched {
 public:
  Patched(const std::string& fixture, const json& changes) {
    copy_folder(kData + fixture, folder_.path());
    json config = read_config(folder_.path());
    config.merge_patch(changes);
    write_text(folder_.path("config.json"), config.dump());
  }
  const std::string& path() const { return folder_.path(); }
  LayerKind last_kind() const { return convert(path(), {}).layers().kinds.back(); }

 private:
  Folder folder_;
};

void expect_refused(const std::string& fixture, const json& changes, const std::string& part) {
  const std::string sentence = convert_error(Patched(fixture, changes).path()).sentence;
  EXPECT_NE(sentence.find(part), std::string::npos) << changes << ": " << sentence;
}

TEST(Latent, KeysOfEachHeadAreTransposed) {
  const Written file = convert(kData + "deepseek-v2", {FormatId::f32, Compression::none, 0});
  const Weights both = hugging_face_weights(kData + "deepseek-v2").at("model.layers.1.self_attn.kv_b_proj.weight");
  const Weights& up = file.weights.at({2, Role::latent_k_up});
  const Weights& values = file.weights.at({2, Role::latent_v_up});
  const std::size_t heads = 4, still = 16, value = 16, latent = 32;
  ASSERT_EQ(up.values.size(), heads * latent * still);
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t i = 0; i < still; ++i) {
      for (std::size_t j = 0; j < latent; ++j) {
        EXPECT_EQ(up.values[(h * latent + j) * still + i], both.values[(h * (still + value) + i) * latent + j]);
        EXPECT_EQ(values.values[(h * value + i) * latent + j],
                  both.values[(h * (still + value) + still + i) * latent + j]);
      }
    }
  }
}

TEST(Latent, SettingsOfDirectoriesAndGguf) {
  for (const char* const name : {"deepseek-v3", "gguf/deepseek-v3.gguf"}) {
    const LayerKind kind = convert(kData + name, {}).layers().kinds.back();
    EXPECT_EQ(kind.mixer, Mixer::latent);
    EXPECT_EQ(kind.router, Router::sigmoid);
    EXPECT_EQ(kind.router_groups, 2u);
    EXPECT_EQ(kind.router_groups_used, 1u);
    EXPECT_EQ(kind.query_rank, 24u);
    EXPECT_EQ(kind.latent_dim, 32u);
    EXPECT_EQ(kind.latent_head_dim, 32u);
    EXPECT_EQ(kind.latent_value_dim, 16u);
    EXPECT_EQ(kind.rope_dims, 16u);
    EXPECT_EQ(kind.head_dim, 48u);
    EXPECT_EQ(kind.router_scale, 2.5f);
  }
  EXPECT_EQ(convert(kData + "gguf/deepseek-v2.gguf", {}).layers().kinds.back().router, Router::softmax);
}

TEST(Latent, YarnScalesScores) {
  const json yarn{{"rope_parameters",
                   {{"rope_type", "yarn"},
                    {"factor", 40.0},
                    {"mscale", 1.0},
                    {"mscale_all_dim", 1.0},
                    {"original_max_position_embeddings", 64}}}};
  const LayerKind kind = Patched("deepseek-v3", yarn).last_kind();
  const double m = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(kind.attention_scale, m * m / std::sqrt(32.0), 1e-6);
  EXPECT_EQ(kind.rope_scale, 1.0f);
  EXPECT_EQ(Patched("deepseek-v3", json::object()).last_kind().attention_scale, 0.0f);
}

TEST(Latent, LayersThatGuessAreLeftOut) {
  const Patched folder("deepseek-v3", {{"num_hidden_layers", 3}, {"num_nextn_predict_layers", 1}});
  EXPECT_EQ(convert(folder.path(), {}).tables.header.n_layers, 3u);
}

TEST(Latent, ConfigurationsThatMakeNoSense) {
  for (const json& number : {json(-1), json(0), json(1e9), json(2.5), json("wide"), json(nullptr)}) {
    for (const char* const key : {"kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"}) {
      expect_refused("deepseek-v2", {{key, number}}, "");
    }
    if (number != 0 && !number.is_null()) expect_refused("deepseek-v2", {{"q_lora_rank", number}}, "q_lora_rank");
  }
  expect_refused("deepseek-v2", {{"v_head_dim", 24}}, "must be multiples of 16");
  expect_refused("deepseek-v2", {{"kv_lora_rank", 40}}, "must be multiples of 16");
  expect_refused("deepseek-v2", {{"qk_rope_head_dim", 15}}, "rope_dims is 15");
  expect_refused("deepseek-v2", {{"n_group", 3}, {"topk_group", 3}}, "of 3 groups of 8 experts");
  expect_refused("deepseek-v3", {{"topk_group", 0}}, "0 of 2 groups");
  expect_refused("deepseek-v3", {{"topk_group", 3}}, "3 of 2 groups");
  expect_refused("deepseek-v3", {{"n_group", -2}}, "n_group");
  expect_refused("deepseek-v2", {{"scoring_func", "tanh"}}, "which is not supported");
  expect_refused("deepseek-v2", {{"topk_method", "noaux_tc"}}, "topk_method");
  expect_refused("deepseek-v3", {{"rope_interleave", false}}, "rope_interleave");
}

TEST(States, MultipliersBecomeWeights) {
  const Patched folder("falcon-h1", {{"ssm_in_multiplier", 0.5},
                                     {"ssm_multipliers", {2, 4, 8, 16, 32}},
                                     {"key_multiplier", 0.25},
                                     {"attention_in_multiplier", 2},
                                     {"mlp_multipliers", {3, 5}},
                                     {"embedding_multiplier", 7},
                                     {"lm_head_multiplier", 0.125}});
  const Written file = convert(folder.path(), {FormatId::f32, Compression::none, 0});
  const auto source = hugging_face_weights(folder.path());
  const auto expect = [&](Role role, const char* name, std::size_t first, float factor) {
    const Weights& made = file.weights.at({1, role});
    const std::vector<float>& from = source.at(std::string("model.layers.0.") + name + ".weight").values;
    for (std::size_t i = 0; i < made.values.size(); ++i) {
      ASSERT_EQ(made.values[i], from[first * made.cols + i] * factor) << name << i;
    }
  };
  expect(Role::state_z, "mamba.in_proj", 0, 1);
  expect(Role::state_v, "mamba.in_proj", 128, 2);
  expect(Role::state_k, "mamba.in_proj", 256, 4);
  expect(Role::state_q, "mamba.in_proj", 272, 8);
  expect(Role::state_a, "mamba.in_proj", 288, 16);
  expect(Role::attn_k, "self_attn.k_proj", 0, 0.5f);
  expect(Role::attn_v, "self_attn.v_proj", 0, 2);
  expect(Role::ffn_gate, "feed_forward.gate_proj", 0, 3);
  expect(Role::ffn_up, "feed_forward.up_proj", 0, 1);
  expect(Role::ffn_down, "feed_forward.down_proj", 0, 5);
  EXPECT_EQ(file.layers().model.embedding_scale, 7);
  EXPECT_EQ(file.layers().model.logit_scale, 0.125f);
  for (const json& bad : {json(0), json(1e9), json("two"), json::array({1})}) {
    expect_refused("falcon-h1", {{"key_multiplier", bad}}, "is no factor of weights");
  }
}

TEST(States, ConfigurationsThatMakeNoSense) {
  for (const json& number : {json(-1), json(0), json(1e9), json(2.5), json("wide"), json(nullptr)}) {
    for (const char* const key : {"mamba_d_state", "mamba_d_conv", "mamba_dt_rank", "mamba_expand"}) {
      expect_refused("jamba", {{key, number}}, "");
    }
    for (const char* const key : {"mamba_n_heads", "mamba_d_head", "mamba_n_groups"}) {
      expect_refused("falcon-h1", {{key, number}}, "");
    }
  }
  expect_refused("nemotron-h", {{"use_bias", true}}, "use_bias");
  expect_refused("apertus", {{"hidden_act", "relu"}}, "hidden_act");
}

}  // namespace
}  // namespace qsf::test
