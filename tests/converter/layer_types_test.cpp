// Which layers are of which type: every form in which a source says it, and what is refused.
#include "converter/model/layer_types.h"

#include <gtest/gtest.h>

#include "converter/recipes/recipe_json.h"
#include "tests/support/error_of.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kRecipe = R"({
  "name": "toy",
  "layer_types": {
    "config": ["types", "full", "interval"],
    "gguf": ["kv"],
    "listed": "full",
    "others": "conv",
    "types": {
      "full": {},
      "conv": { "mixer": "short_conv", "conv_taps": { "config": "taps", "gguf": 1 } },
      "none": { "mixer": "none" }
    }
  }
})";

/// The layers whose mixer is a convolution, of five; the error's sentence where there is one.
std::string convolutions(const Json& config, Naming naming = Naming::hugging_face, std::uint32_t n_layers = 5) {
  const Result<Json> json = parse_json(kRecipe, "toy.json");
  EXPECT_TRUE(json);
  const Result<Recipe> recipe = read_recipe(*json, "toy.json");
  EXPECT_TRUE(recipe) << recipe.error().sentence;
  const Lookup lookup{
      .value = [&](const std::string& key) { return config.contains(key) ? config[key] : Json(nullptr); }};
  const auto types = read_layer_types(*recipe, naming, lookup, n_layers, "config");
  if (!types) return types.error().sentence;
  std::string text;
  for (const LayerException& exception : *types) {
    LayerKind kind;
    apply_settings(exception.settings, kind);
    for (const std::uint32_t layer : exception.layers) {
      if (kind.mixer == Mixer::short_conv) text += std::to_string(layer) + "*" + std::to_string(kind.conv_taps) + " ";
    }
  }
  return text;
}

TEST(LayerTypes, AreNamedListedOrEveryNth) {
  EXPECT_EQ(convolutions({{"taps", 3}, {"types", {"conv", "full", "none", "conv", "full"}}}), "0*3 3*3 ");
  EXPECT_EQ(convolutions({{"taps", 4}, {"full", {1, 4}}}), "0*4 2*4 3*4 ");
  EXPECT_EQ(convolutions({{"taps", 4}, {"interval", 2}}), "0*4 2*4 4*4 ");
  EXPECT_EQ(convolutions({{"kv", {0, 8, 0, 8, 8}}}, Naming::gguf), "0*1 2*1 ") << "and what GGUF leaves out is said";
  EXPECT_EQ(convolutions({{"types", {"full", "full", "full", "full", "full"}}}), "") << "taps are not asked for";
}

TEST(LayerTypes, AreRefusedWhereTheyAreNotSaid) {
  EXPECT_EQ(convolutions({{"taps", 3}}), "config: \"types\" is missing; it names the type of each layer");
  EXPECT_EQ(convolutions({{"types", {"conv", "full", "slow", "conv", "full"}}}),
            "config: the layer type \"slow\" is not supported");
  const std::string wrong = "config: \"types\" does not name the type of each of 5 layers";
  EXPECT_EQ(convolutions({{"types", {"conv", "full"}}}), wrong);
  EXPECT_EQ(convolutions({{"types", "full"}}), wrong);
  EXPECT_EQ(convolutions({{"types", {7}}}), wrong) << "there is no layer 7";
  EXPECT_EQ(convolutions({{"types", {1, -1}}}), wrong);
  EXPECT_EQ(convolutions({{"types", 0}}), wrong);
  EXPECT_EQ(convolutions({{"kv", {0, 8, 0}}}, Naming::gguf),
            "config: \"kv\" does not name the type of each of 5 layers");
  EXPECT_EQ(convolutions({{"types", {"conv", 1, "conv", "full", "full"}}}),
            "config: the layer type \"?\" is not supported");
}

TEST(LayerTypes, ARecipeNamesTypesThatItHas) {
  for (const std::string_view wrong : {
           R"({"name": "t", "layer_types": {"config": ["k"]}})",
           R"({"name": "t", "layer_types": {"types": {"a": {}}, "listed": "b"}})",
           R"({"name": "t", "layer_types": {"types": {"a": {"no such key": 1}}}})",
           R"({"name": "t", "layer_types": {"types": {}, "other": 1}})",
           R"({"name": "t", "tensors": {"conv_weight": {"name": "c.{}", "flat": true, "rows": [0, 1]}}})",
       }) {
    const Result<Json> json = parse_json(wrong, "t.json");
    ASSERT_TRUE(json);
    const Result<Recipe> recipe = read_recipe(*json, "t.json");
    ASSERT_FALSE(recipe) << wrong;
    EXPECT_EQ(error_of(recipe).code, ErrorCode::bad_input) << wrong;
  }
}

}  // namespace
}  // namespace qsf::convert
