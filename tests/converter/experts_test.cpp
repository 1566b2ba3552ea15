// Experts' tensors in the shapes that sources have them in.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "converter/convert.h"
#include "converter/inputs.h"
#include "converter/recipe_json.h"
#include "converter/settings.h"
#include "file/open_file.h"
#include "file/small_file.h"
#include "qsf/base/half.h"

namespace qsf::convert {
namespace {

const std::string kData = std::string(QSF_SOURCE_DIR) + "/tests/data/";

ModelSource opened(const std::string& name) {
  Result<ModelSource> model = open_model(kData + name);
  EXPECT_TRUE(model) << model.error().sentence;
  return model ? std::move(*model) : ModelSource{};
}

SourceTensor& tensor(ModelSource& model, std::string_view name) {
  return *std::ranges::find(model.tensors, name, &SourceTensor::name);
}

std::string refusal(const ModelSource& model) {
  const Result<FileSource> plan = plan_file(model, {});
  return plan ? std::string() : std::string(plan.error().sentence);
}

/// A file's tensor as floats.
std::vector<float> floats(const FileSource& file, std::uint32_t section, Role role) {
  for (const TensorSource& t : file.tensors) {
    if (t.section != section || t.role != role) continue;
    std::vector<float> out(std::size_t{t.rows} * t.cols);
    EXPECT_EQ(t.format, FormatId::f32);
    EXPECT_TRUE(t.rows_of(0, t.rows, std::as_writable_bytes(std::span(out))));
    return out;
  }
  ADD_FAILURE() << "no " << role_name(role);
  return {};
}

std::vector<float> stored(const SourceTensor& t, std::uint32_t rows) {
  const std::size_t cols = t.shape.back();
  std::vector<std::byte> raw(rows * cols * 2);
  EXPECT_EQ(t.format, FormatId::bf16);
  EXPECT_TRUE(t.rows_of(0, rows, raw));
  std::vector<float> out(rows * cols);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &raw[2 * i], 2);
    out[i] = bf16_to_f32(bits);
  }
  return out;
}

TEST(Experts, OneTensorForEachIsJoined) {
  ModelSource model = opened("mixtral");
  Options options;
  options.matrices = FormatId::f32;
  const Result<FileSource> file = plan_file(model, options);
  ASSERT_TRUE(file) << file.error().sentence;
  const std::vector<float> up = floats(*file, 2, Role::expert_up);
  for (std::uint32_t e = 0; e < 8; ++e) {
    const std::string name = "model.layers.1.block_sparse_moe.experts." + std::to_string(e) + ".w3.weight";
    const std::vector<float> one = stored(tensor(model, name), 64);
    EXPECT_TRUE(std::equal(one.begin(), one.end(), up.begin() + e * 64 * 128)) << e;
  }
}

// gpt-oss: [experts, dim, 2 width], gate and up taking turns.
TEST(Experts, TurnedAndInterleavedOnesAreTakenApart) {
  ModelSource model = opened("gpt-oss");
  Options options;
  options.matrices = FormatId::f32;
  const Result<FileSource> file = plan_file(model, options);
  ASSERT_TRUE(file) << file.error().sentence;
  const std::vector<float> gate = floats(*file, 2, Role::expert_gate), up = floats(*file, 2, Role::expert_up);
  const std::vector<float> both = stored(tensor(model, "model.layers.1.mlp.experts.gate_up_proj"), 8 * 128);
  ASSERT_EQ(gate.size(), both.size() / 2);
  std::size_t wrong = 0;
  for (std::size_t e = 0; e < 8; ++e) {
    for (std::size_t r = 0; r < 64; ++r) {
      for (std::size_t c = 0; c < 128; ++c) {
        const std::size_t to = (e * 64 + r) * 128 + c, from = (e * 128 + c) * 128 + 2 * r;
        wrong += gate[to] != both[from] || up[to] != both[from + 1] ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(wrong, 0u);
}

// Rows are asked for in runs that begin and end anywhere.
TEST(Experts, RunsOfRowsMayCrossExperts) {
  for (const std::string name : {"mixtral", "gpt-oss", "granitemoe"}) {
    const ModelSource model = opened(name);
    Options options;
    options.matrices = FormatId::f32;
    const Result<FileSource> file = plan_file(model, options);
    ASSERT_TRUE(file) << file.error().sentence;
    for (const TensorSource& t : file->tensors) {
      if (t.section != 1 || !of_experts(rule_of(t.role)) || !rule_of(t.role).matrix) continue;
      const std::vector<float> all = floats(*file, 1, t.role);
      for (std::uint32_t begin = 0; begin < t.rows; begin += 75) {
        const std::uint32_t n = std::min(75u, t.rows - begin);
        std::vector<float> run(std::size_t{n} * t.cols);
        ASSERT_TRUE(t.rows_of(begin, n, std::as_writable_bytes(std::span(run))));
        EXPECT_TRUE(std::equal(run.begin(), run.end(), all.begin() + std::ptrdiff_t{begin} * t.cols)) << name;
      }
    }
  }
}

TEST(Experts, OneThatIsMissingTwiceOrOfAnotherShapeIsNamed) {
  const std::string name = "model.layers.2.block_sparse_moe.experts.5.w2.weight";
  const auto at = [&](ModelSource& model) { return std::ranges::find(model.tensors, name, &SourceTensor::name); };
  ModelSource missing = opened("mixtral");
  missing.tensors.erase(at(missing));
  EXPECT_EQ(refusal(missing), "tensor " + name + " is missing");
  ModelSource twice = opened("mixtral");
  twice.tensors.push_back(*at(twice));
  EXPECT_EQ(refusal(twice), "tensor " + name + " is there twice");
  ModelSource other = opened("mixtral");
  at(other)->shape = {64, 128};
  EXPECT_EQ(refusal(other),
            "tensor " + name + " is of another shape or type than model.layers.2.block_sparse_moe.experts.0.w2.weight");
  ModelSource ninth = opened("mixtral");
  ninth.tensors.push_back(*at(ninth));
  ninth.tensors.back().name = "model.layers.2.block_sparse_moe.experts.8.w2.weight";
  EXPECT_EQ(refusal(ninth), "tensor " + ninth.tensors.back().name + " has no place in a mixtral model of 4 layers");
}

TEST(Experts, ARouterIsNotRounded) {
  for (const auto& [name, format] :
       {std::pair("mixtral", FormatId::bf16), std::pair("gguf/mixtral.gguf", FormatId::f32)}) {
    const ModelSource model = opened(name);
    Options options;
    options.matrices = FormatId::q4;
    const Result<FileSource> file = plan_file(model, options);
    ASSERT_TRUE(file) << file.error().sentence;
    for (const TensorSource& t : file->tensors) {
      EXPECT_TRUE(t.role != Role::router || t.format == format);
      EXPECT_TRUE(t.role != Role::expert_up || t.format == FormatId::q4);
    }
  }
}

/// A mixture behind as many dense layers as the configuration says, as LFM2's and ERNIE's are.
TEST(Experts, TheFirstLayersMayBeDense) {
  const Result<Json> json = parse_json(R"({
    "name": "a",
    "layer": { "ffn": "mixture" },
    "exceptions": [{ "layers": { "first": { "config": "dense", "gguf": "dense_count", "default": 1 } }, "ffn": "gated" }]
  })",
                                       "r.json");
  ASSERT_TRUE(json);
  const Result<Recipe> recipe = read_recipe(*json, "r.json");
  ASSERT_TRUE(recipe) << recipe.error().sentence;
  const auto dense = [&](Naming naming, const Json& value) {
    const auto lookup = [&](const std::string& key) { return key == "dense" ? value : Json(nullptr); };
    const Result<LayerRules> rules = resolve(*recipe, naming, lookup, "c.json");
    EXPECT_TRUE(rules) << rules.error().sentence;
    return rules ? rules->exceptions.at(0).layers : std::vector<std::uint32_t>{99};
  };
  EXPECT_EQ(dense(Naming::hugging_face, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(dense(Naming::hugging_face, 0), std::vector<std::uint32_t>{});
  EXPECT_EQ(dense(Naming::gguf, 3), std::vector<std::uint32_t>{0});
  const auto huge = [](const std::string&) { return Json(1e9); };
  EXPECT_FALSE(resolve(*recipe, Naming::hugging_face, huge, "c.json"));
}

std::string recipe_refusal(const std::string& text) {
  const Result<Json> json = parse_json(text, "r.json");
  EXPECT_TRUE(json);
  const Result<Recipe> recipe = read_recipe(*json, "r.json");
  return recipe ? std::string() : std::string(recipe.error().sentence);
}

TEST(Experts, RecipesThatCannotBeAreRefused) {
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "tensors": {"ffn_up": "l.{}.{expert}.up"}})"),
            "r.json: the name \"l.{}.{expert}.up\" of ffn_up has {expert} where it cannot");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "tensors": {"expert_up": "{expert}.{}.{expert}.up"}})"),
            "r.json: the name \"{expert}.{}.{expert}.up\" of expert_up has {expert} where it cannot");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "layer": {"n_experts": {"config": []}}})"),
            "r.json: a list of keys is empty");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "sizes": {"dim": {"config": "a", "gguf": 4}}})"),
            "r.json: the size \"dim\" is a key in GGUF, no number");
}

}  // namespace
}  // namespace qsf::convert
