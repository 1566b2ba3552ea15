// Experts' tensors in the shapes that sources have them in.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "converter/conversion/conversion.h"
#include "converter/readers/inputs.h"
#include "converter/recipes/recipe_json.h"
#include "converter/recipes/settings.h"
#include "file/open_file.h"
#include "file/small_file.h"
#include "qsf/base/half.h"
#include "tests/support/paths.h"

namespace qsf::convert {
namespace {

const std::string kData = source_dir() + "/tests/data/";

LoadedModel opened(const std::string& name) {
  Result<LoadedModel> model = open_model(kData + name);
  EXPECT_TRUE(model) << model.error().sentence;
  return model ? std::move(*model) : LoadedModel{};
}

LoadedTensor& tensor(LoadedModel& model, std::string_view name) {
  return *std::ranges::find(model.tensors, name, &LoadedTensor::name);
}

std::string refusal(const LoadedModel& model) {
  const Result<FileSpec> plan = plan_file(model, {});
  return plan ? std::string() : std::string(plan.error().sentence);
}

/// A file's tensor as floats.
std::vector<float> floats(const FileSpec& file, std::uint32_t stage, Role role) {
  for (const TensorSpec& t : file.tensors) {
    if (t.stage != stage || t.role != role) continue;
    std::vector<float> out(std::size_t{t.rows} * t.cols);
    EXPECT_EQ(t.format, FormatId::f32);
    EXPECT_TRUE(t.rows_of(0, t.rows, std::as_writable_bytes(std::span(out))));
    return out;
  }
  ADD_FAILURE() << "no " << role_name(role);
  return {};
}

std::vector<float> stored(const LoadedTensor& t, std::uint32_t rows) {
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
  LoadedModel model = opened("mixtral");
  Options options;
  options.matrices = FormatId::f32;
  const Result<FileSpec> file = plan_file(model, options);
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
  LoadedModel model = opened("gpt-oss");
  Options options;
  options.matrices = FormatId::f32;
  const Result<FileSpec> file = plan_file(model, options);
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

/// `parts` of each expert, one behind the other, as one tensor of all.
LoadedTensor fused(LoadedModel& model, std::string name, const std::vector<std::string>& parts, std::uint32_t n) {
  LoadedTensor out;
  std::vector<std::byte> all;
  std::uint64_t rows = 0;
  for (std::uint32_t e = 0; e < n; ++e) {
    for (std::string part : parts) {
      part.replace(part.find('#'), 1, std::to_string(e));
      const auto at = std::ranges::find(model.tensors, part, &LoadedTensor::name);
      std::vector<std::byte> bytes(at->shape[0] * at->shape[1] * 2);
      EXPECT_TRUE(at->rows_of(0, static_cast<std::uint32_t>(at->shape[0]), bytes));
      all.insert(all.end(), bytes.begin(), bytes.end());
      if (e == 0) rows += at->shape[0];
      out.shape = {n, rows, at->shape[1]};
      out.format = at->format;
      out.type = at->type;
      model.tensors.erase(at);
    }
  }
  out.name = std::move(name);
  out.rows_of = [all = std::move(all), size = out.shape[2] * 2](std::uint32_t begin, std::uint32_t count,
                                                                std::span<std::byte> to) -> Status {
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(begin * size), count * size, to.begin());
    return {};
  };
  return out;
}

void expect_same_experts(const LoadedModel& one, const LoadedModel& other) {
  Options options;
  options.matrices = FormatId::f32;
  const Result<FileSpec> a = plan_file(one, options), b = plan_file(other, options);
  ASSERT_TRUE(a) << a.error().sentence;
  ASSERT_TRUE(b) << b.error().sentence;
  ASSERT_EQ(a->tensors.size(), b->tensors.size());
  for (std::uint32_t layer = 0; layer < a->header.n_layers; ++layer) {
    for (const Role role : {Role::expert_gate, Role::expert_up, Role::expert_down}) {
      EXPECT_EQ(floats(*a, layer + 1, role), floats(*b, layer + 1, role)) << layer << " " << role_name(role);
    }
  }
}

// Qwen3.5's checkpoints: [experts, 2 width, dim] with gates in front.
TEST(Experts, FusedOnesAreTakenApart) {
  const LoadedModel split = opened("qwen3.5-moe");
  LoadedModel model = opened("qwen3.5-moe");
  for (std::uint32_t layer = 0; layer < model.config.n_layers; ++layer) {
    const std::string experts = "model.layers." + std::to_string(layer) + ".mlp.experts.";
    model.tensors.push_back(
        fused(model, experts + "gate_up_proj", {experts + "#.gate_proj.weight", experts + "#.up_proj.weight"}, 8));
    model.tensors.push_back(fused(model, experts + "down_proj", {experts + "#.down_proj.weight"}, 8));
  }
  expect_same_experts(split, model);
}

/// Mixtral's first GGUF files: a tensor for each expert.
LoadedModel old_mixtral() {
  LoadedModel model = opened("gguf/mixtral.gguf");
  std::vector<LoadedTensor> all;
  for (LoadedTensor& tensor : model.tensors) {
    const std::size_t at = tensor.name.find("_exps.");
    if (at == std::string::npos) {
      all.push_back(std::move(tensor));
      continue;
    }
    const auto n = static_cast<std::uint32_t>(tensor.shape[0]), rows = static_cast<std::uint32_t>(tensor.shape[1]);
    for (std::uint32_t e = 0; e < n; ++e) {
      LoadedTensor one;
      one.name = tensor.name.substr(0, at) + "." + std::to_string(e) + ".weight";
      one.format = tensor.format;
      one.type = tensor.type;
      one.shape = {tensor.shape[1], tensor.shape[2]};
      one.rows_of = [rows_of = tensor.rows_of, first = e * rows](std::uint32_t begin, std::uint32_t count,
                                                                 std::span<std::byte> to) {
        return rows_of(first + begin, count, to);
      };
      all.push_back(std::move(one));
    }
  }
  model.tensors = std::move(all);
  return model;
}

TEST(Experts, OldGgufFilesHaveATensorForEach) {
  expect_same_experts(opened("gguf/mixtral.gguf"), old_mixtral());
  LoadedModel model = old_mixtral();
  std::erase_if(model.tensors, [](const LoadedTensor& t) { return t.name == "blk.1.ffn_up.3.weight"; });
  EXPECT_EQ(refusal(model), "tensor blk.1.ffn_up.3.weight is missing");
}

// Rows are asked for in runs that begin and end anywhere.
TEST(Experts, RunsOfRowsMayCrossExperts) {
  for (const std::string name : {"mixtral", "gpt-oss", "granitemoe"}) {
    const LoadedModel model = opened(name);
    Options options;
    options.matrices = FormatId::f32;
    const Result<FileSpec> file = plan_file(model, options);
    ASSERT_TRUE(file) << file.error().sentence;
    for (const TensorSpec& t : file->tensors) {
      if (t.stage != 1 || !of_experts(rule_of(t.role)) || !rule_of(t.role).matrix) continue;
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
  const auto at = [&](LoadedModel& model) { return std::ranges::find(model.tensors, name, &LoadedTensor::name); };
  LoadedModel missing = opened("mixtral");
  missing.tensors.erase(at(missing));
  EXPECT_EQ(refusal(missing), "tensor " + name + " is missing");
  LoadedModel twice = opened("mixtral");
  twice.tensors.push_back(*at(twice));
  EXPECT_EQ(refusal(twice), "tensor " + name + " is there twice");
  LoadedModel other = opened("mixtral");
  at(other)->shape = {64, 128};
  EXPECT_EQ(refusal(other),
            "tensor " + name + " is of another shape or type than model.layers.2.block_sparse_moe.experts.0.w2.weight");
  LoadedModel ninth = opened("mixtral");
  ninth.tensors.push_back(*at(ninth));
  ninth.tensors.back().name = "model.layers.2.block_sparse_moe.experts.8.w2.weight";
  EXPECT_EQ(refusal(ninth), "tensor " + ninth.tensors.back().name + " has no place in a mixtral model of 4 layers");
}

TEST(Experts, ARouterIsNotRounded) {
  for (const auto& [name, format] :
       {std::pair("mixtral", FormatId::bf16), std::pair("gguf/mixtral.gguf", FormatId::f32)}) {
    const LoadedModel model = opened(name);
    Options options;
    options.matrices = FormatId::q4;
    const Result<FileSpec> file = plan_file(model, options);
    ASSERT_TRUE(file) << file.error().sentence;
    for (const TensorSpec& t : file->tensors) {
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
    const Lookup lookup{.value = [&](const std::string& key) { return key == "dense" ? value : Json(nullptr); }};
    const Result<LayerRules> rules = resolve(*recipe, naming, lookup, "c.json");
    EXPECT_TRUE(rules) << rules.error().sentence;
    return rules ? rules->exceptions.at(0).layers : std::vector<std::uint32_t>{99};
  };
  EXPECT_EQ(dense(Naming::hugging_face, 3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(dense(Naming::hugging_face, 0), std::vector<std::uint32_t>{});
  EXPECT_EQ(dense(Naming::gguf, 3), std::vector<std::uint32_t>{0});
  const Lookup huge{.value = [](const std::string&) { return Json(1e9); }};
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
            "r.json: the name \"l.{}.{expert}.up\" of ffn_up has {expert} in the wrong place");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "tensors": {"expert_up": "{expert}.{}.{expert}.up"}})"),
            "r.json: the name \"{expert}.{}.{expert}.up\" of expert_up has {expert} in the wrong place");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "layer": {"n_experts": {"config": []}}})"),
            "r.json: a list of keys is empty");
  EXPECT_EQ(recipe_refusal(R"({"name": "a", "sizes": {"dim": {"config": "a", "gguf": 4}}})"),
            "r.json: the size \"dim\" is a key in GGUF, no number");
}

}  // namespace
}  // namespace qsf::convert
