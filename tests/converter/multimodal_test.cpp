// Text models inside multimodal checkpoints convert to the very file that they give alone.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "converter/readers/inputs.h"
#include "converter/safetensors_file.h"

namespace qsf::test {
namespace {

using nlohmann::json;

class Multimodal : public testing::Test {
 protected:
  void SetUp() override {
    copy_folder(kSource + "/tests/data/llama", folder_.path());
    alone_ = convert(folder_.path(), {}).file;
    tensors_ = read_tensors(folder_.path("model.safetensors"));
    text_ = read_config(folder_.path());
  }

  /// The checkpoint with every name changed, and what else it holds.
  void write(const std::map<std::string, std::string>& renames, const StoredTensors& others) {
    StoredTensors all = others;
    for (const auto& [name, tensor] : tensors_) {
      std::string renamed = name;
      for (const auto& [from, to] : renames) {
        if (name.starts_with(from)) renamed = to + name.substr(from.size());
      }
      all[renamed] = tensor;
    }
    write_tensors(folder_.path("model.safetensors"), all);
  }
  /// "text_config" and, of the whole, what `whole` says.
  void wrap(json whole) {
    whole["text_config"] = text_;
    whole["vision_config"] = {{"hidden_size", 7}, {"model_type", "siglip_vision_model"}};
    write_text(folder_.path("config.json"), whole.dump());
  }
  std::vector<std::string> warnings() {
    const Result<convert::LoadedModel> model = convert::open_model(folder_.path(), true);
    EXPECT_TRUE(model) << model.error().sentence;
    return model ? model->warnings : std::vector<std::string>();
  }

  static inline const StoredTensor kSmall{"F32", {2}, Bytes(8)};
  Folder folder_;
  Bytes alone_;
  StoredTensors tensors_;
  json text_;
};

TEST_F(Multimodal, NamesAsTransformersSavesThem) {
  wrap({{"model_type", "seeing_llama"}});
  write({{"model.", "model.language_model."}},
        {{"model.visual.blocks.0.attn.qkv.weight", kSmall}, {"model.visual.merger.norm.bias", kSmall}});
  EXPECT_EQ(convert(folder_.path(), {}).file, alone_);
  EXPECT_EQ(warnings(), std::vector<std::string>{"2 tensors of images and sound are left out: model.visual (2)"});
}

TEST_F(Multimodal, OldNames) {
  wrap({{"model_type", "seeing_llama"}});
  write({{"", "language_model."}}, {{"vision_tower.vision_model.post_layernorm.bias", kSmall},
                                    {"audio_tower.conv1.weight", kSmall},
                                    {"image_newline", kSmall},
                                    {"multi_modal_projector.linear_1.bias", kSmall},
                                    {"multi_modal_projector.linear_2.bias", kSmall}});
  EXPECT_EQ(convert(folder_.path(), {}).file, alone_);
  EXPECT_EQ(warnings(),
            std::vector<std::string>{"5 tensors of images and sound are left out: audio_tower (1), image_newline (1), "
                                     "multi_modal_projector (2), vision_tower (1)"});
}

TEST_F(Multimodal, TheWholeSaysWhatItsTextDoesNot) {
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id", "tie_word_embeddings", "model_type"}) {
    json whole = {{"model_type", "seeing_llama"}};
    if (text_.contains(key)) whole[key] = text_[key];
    const json kept = text_;
    text_.erase(key);
    wrap(whole);
    EXPECT_EQ(convert(folder_.path(), {}).file, alone_) << key;
    text_ = kept;
  }
}

TEST_F(Multimodal, OtherNamesAreRefused) {
  wrap({{"model_type", "seeing_llama"}});
  write({{"model.", "model.language_model."}}, {{"model.taste.weight", kSmall}});
  Error error = convert_error(folder_.path());
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_NE(std::strstr(error.sentence, "model.taste.weight"), nullptr) << error.sentence;
  // Without a text_config nothing is known of images.
  write_text(folder_.path("config.json"), text_.dump());
  write({}, {{"visual.patch_embed.weight", kSmall}});
  error = convert_error(folder_.path());
  EXPECT_NE(std::strstr(error.sentence, "visual.patch_embed.weight"), nullptr) << error.sentence;
}

TEST_F(Multimodal, ANameThatIsThereTwiceIsRefused) {
  wrap({{"model_type", "seeing_llama"}});
  write({}, {{"language_model.model.norm.weight", tensors_.at("model.norm.weight")}});
  const Error error = convert_error(folder_.path());
  EXPECT_NE(std::strstr(error.sentence, "model.norm.weight is there twice"), nullptr) << error.sentence;
}

TEST_F(Multimodal, HeadsThatGuessAreLeftOut) {
  write({}, {{"mtp.layers.0.mlp.up_proj.weight", kSmall}, {"mtp.norm.weight", kSmall}});
  EXPECT_EQ(convert(folder_.path(), {}).file, alone_);
  EXPECT_EQ(warnings(), std::vector<std::string>{"2 tensors of heads that guess further tokens are left out: mtp (2)"});
}

TEST_F(Multimodal, LayersThatGuessAreLeftOut) {
  const std::uint32_t n = text_["num_hidden_layers"].get<std::uint32_t>() - 1;
  const std::string last = "model.layers." + std::to_string(n);
  text_["num_hidden_layers"] = n;
  write_text(folder_.path("config.json"), text_.dump());
  EXPECT_NE(std::strstr(convert_error(folder_.path()).sentence, (last + ".").c_str()), nullptr);
  text_["num_nextn_predict_layers"] = 1;
  write_text(folder_.path("config.json"), text_.dump());
  EXPECT_EQ(convert(folder_.path(), {}).tables.header.n_layers, n);
  EXPECT_EQ(warnings(),
            std::vector<std::string>{"9 tensors of heads that guess further tokens are left out: " + last + " (9)"});
}

// What gemma-3-4b's config.json leaves to transformers.
TEST(MultimodalGemma3, SizesHaveTheirDefaults) {
  const Folder folder;
  copy_folder(kSource + "/tests/data/gemma3", folder.path());
  write_text(folder.path("config.json"), json{{"model_type", "gemma3"},
                                              {"text_config",
                                               {{"model_type", "gemma3_text"},
                                                {"hidden_size", 2560},
                                                {"intermediate_size", 10240},
                                                {"num_hidden_layers", 34},
                                                {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}},
                                                {"sliding_window", 1024}}}}
                                             .dump());
  const Result<convert::LoadedModel> model = convert::open_model(folder.path(), false);
  ASSERT_TRUE(model) << model.error().sentence;
  const convert::ModelConfig& config = model->config;
  EXPECT_EQ(config.n_heads, 8u);
  EXPECT_EQ(config.n_kv_heads, 4u);
  EXPECT_EQ(config.head_dim, 256u);
  EXPECT_EQ(config.vocab_size, 262208u);
  EXPECT_EQ(config.max_seq_len, 131072u);
  EXPECT_EQ(config.rope_theta, 1e6f);
  EXPECT_EQ(config.norm_epsilon, 1e-6f);
  EXPECT_EQ(config.rope_divisors, std::vector<float>(128, 8.0f));
  EXPECT_FALSE(config.tied.has_value());
}

}  // namespace
}  // namespace qsf::test
