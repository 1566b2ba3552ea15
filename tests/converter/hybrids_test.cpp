// Models of layers of several types: what their configurations may say, in older words too, and what is refused.
#include <functional>

#include "converter/support.h"

namespace qsf::test {
namespace {

using nlohmann::json;

/// The directory of tests/data with another configuration.
class Changed {
 public:
  Changed(const std::string& name, const std::function<void(json&)>& change) {
    copy_folder(kSource + "/tests/data/" + name, folder_.path(name));
    path_ = folder_.path(name);
    json config = read_config(path_);
    change(config);
    write_text(path_ + "/config.json", config.dump());
  }
  const std::string& path() const { return path_; }

 private:
  Folder folder_;
  std::string path_;
};

TEST(Hybrids, OlderConfigurationsOfLfm2SayTheSame) {
  const Bytes expected = convert(kSource + "/tests/data/lfm2", {}).file;
  const Changed older("lfm2", [](json& config) {
    config.erase("layer_types");
    config["full_attn_idxs"] = {1, 3};
    config.erase("intermediate_size");
    config["block_ff_dim"] = 384;
    config["block_auto_adjust_ff_dim"] = true;
  });
  EXPECT_EQ(convert(older.path(), {}).file, expected);
}

TEST(Hybrids, AnIntervalSaysWhichLayersAreFull) {
  const Changed older("qwen3.5", [](json& config) {
    config.erase("layer_types");
    config["full_attention_interval"] = 4;
  });
  EXPECT_EQ(convert(older.path(), {}).file, convert(kSource + "/tests/data/qwen3.5", {}).file);
}

TEST(Hybrids, WhatAGgufLeavesOutIsSaid) {
  const auto keys = [](const std::string& path) {
    std::vector<std::uint32_t> tiled;
    for (const LayerKind& kind : convert(path, {}).layers().kinds) {
      if (kind.mixer == Mixer::delta_net) tiled.push_back(kind.state_tiled);
    }
    return tiled;
  };
  EXPECT_EQ(keys(kSource + "/tests/data/qwen3.5"), std::vector<std::uint32_t>{0});
  EXPECT_EQ(keys(kSource + "/tests/data/gguf/qwen3.5.gguf"), std::vector<std::uint32_t>{1});
}

TEST(Hybrids, WhatWouldChangeTheResultIsRefused) {
  struct Case {
    const char* model;
    const char* key;
    json value;
    const char* sentence;
  };
  const Case cases[] = {
      {"lfm2", "conv_bias", true, "config.json: \"conv_bias\" is not false, which the recipe lfm2 is for"},
      {"lfm2", "conv_L_cache", 9, "config.json: \"conv_L_cache\" is 9; it must be a whole number from 0 to 8"},
      {"lfm2", "conv_L_cache", 4, "tensor model.layers.0.conv.conv.weight is [128, 1, 3]"},
      {"qwen3.5", "attn_output_gate", false, "\"attn_output_gate\" is not true"},
      {"qwen3.5", "linear_num_key_heads", 3, "state_heads 4 is not a multiple of state_key_heads 3"},
      {"qwen3.5", "linear_value_head_dim", 0, "a head's state is 16 by 0"},
      {"qwen3.5", "linear_value_head_dim", 32, "linear_attn.in_proj_qkv.weight"},
      {"granite-hybrid", "num_local_experts", 4, "block_sparse_moe.router.layer.weight is missing"},
      {"granite-hybrid", "time_step_limit", {0.0, 0.1}, "\"time_step_limit\" is not [0.0,Infinity], which"},
      {"granite-hybrid", "mamba_proj_bias", true, "\"mamba_proj_bias\" is not false"},
  };
  for (const Case& c : cases) {
    const Changed changed(c.model, [&](json& config) { config[c.key] = c.value; });
    const std::string sentence = convert_error(changed.path()).sentence;
    EXPECT_NE(sentence.find(c.sentence), std::string::npos) << c.key << ": " << sentence;
  }
}

}  // namespace
}  // namespace qsf::test
