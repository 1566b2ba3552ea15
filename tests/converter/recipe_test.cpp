// Recipes as JSON: an architecture that is compiled in nowhere, and files that are refused.
#include <cstring>
#include <filesystem>
#include <functional>

#include "converter/gguf_writer.h"
#include "converter/readers/inputs.h"
#include "converter/recipes/recipe_json.h"
#include "converter/recipes/recipes.h"
#include "converter/support.h"
#include "converter/tensors/parts.h"
#include "qsf/base/try.h"
#include "tests/file/small_file.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;
using qsf::test::memory_sink;
using qsf::test::small_source;
using qsf::test::SmallFile;
using qsf::test::SmallOptions;

const std::string kToy = kSource + "/tests/data/recipes/toy.json";

json read_object(const std::string& path) {
  const Bytes bytes = read_bytes(path);
  const char* text = reinterpret_cast<const char*>(bytes.data());
  return json::parse(text, text + bytes.size());
}

/// What tests/data/recipes/toy.json says, where small files are made.
SmallOptions toy_options() {
  SmallOptions options;
  options.n_layers = 4;
  options.biases = true;
  options.model.embedding_scale = 5.5f;
  options.shape = [](std::uint32_t layer, LayerKind& kind) {
    kind.norm_place = NormPosition::after;
    kind.ffn = Ffn::plain;
    kind.activation = Activation::gelu;
    if (layer % 2 == 1) {
      kind.residual = Residual::parallel;
      kind.residual_scale = 0.5f;
    }
    if (layer == 2) kind.mixer = Mixer::none;
  };
  return options;
}

struct Tensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, Tensor>;

void write_safetensors(const std::string& path, const Tensors& tensors) {
  json header = json::object();
  Bytes data;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t begin = data.size();
    for (const float value : tensor.values) put(data, value);
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
  }
  Bytes file;
  put_text(file, header.dump());
  file.insert(file.end(), data.begin(), data.end());
  write_bytes(path, file);
}

/// The same weights as the toy's authors would store them: fused, turned, less one.
Tensors toy_tensors(const SmallFile& file, const SmallOptions& o) {
  Tensors out;
  const std::uint64_t q = std::uint64_t{o.n_heads} * o.head_dim, kv = std::uint64_t{o.n_kv_heads} * o.head_dim;
  const auto at = [&](std::uint32_t stage, Role role) { return file.weights.at({stage, role}); };
  const auto less_one = [](std::vector<float> values) {
    for (float& v : values) v -= 1;
    return values;
  };
  out["words"] = {{o.vocab_size, o.dim}, at(0, Role::token_embd)};
  out["norm"] = {{o.dim}, at(o.n_layers + 1, Role::final_norm)};
  out["optimizer.step_count"] = {{1}, {7}};
  for (std::uint32_t layer = 0; layer < o.n_layers; ++layer) {
    const std::string front = "trunk." + std::to_string(layer) + ".";
    const std::uint32_t stage = layer + 1;
    if (file.weights.contains({stage, Role::attn_q})) {
      const auto fused = [&](Role first, Role second, Role third) {
        std::vector<float> all = at(stage, first);
        for (const Role role : {second, third}) {
          const std::vector<float> part = at(stage, role);
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      };
      out[front + "mix.qkv"] = {{q + 2 * kv, o.dim}, fused(Role::attn_q, Role::attn_k, Role::attn_v)};
      out[front + "mix.shift"] = {{q + 2 * kv}, fused(Role::attn_q_bias, Role::attn_k_bias, Role::attn_v_bias)};
      out[front + "mix.out"] = {{o.dim, q}, at(stage, Role::attn_o)};
      out[front + "mix.norm"] = {{o.dim}, less_one(at(stage, Role::attn_post_norm))};
    }
    out[front + "think.up"] = {{o.ffn_dim, o.dim}, at(stage, Role::ffn_up)};
    out[front + "think.norm"] = {{o.dim}, less_one(at(stage, Role::ffn_post_norm))};
    const std::vector<float> down = at(stage, Role::ffn_down);
    Tensor turned{{o.ffn_dim, o.dim}, std::vector<float>(down.size())};
    for (std::uint32_t r = 0; r < o.dim; ++r) {
      for (std::uint32_t c = 0; c < o.ffn_dim; ++c) turned.values[c * o.dim + r] = down[r * o.ffn_dim + c];
    }
    out[front + "think.down"] = turned;
  }
  return out;
}

/// The toy's directory and recipe, to convert or to damage.
class ToyRecipe : public ::testing::Test {
 protected:
  void SetUp() override {
    options_ = toy_options();
    source_ = small_source(options_, small_);
    std::filesystem::create_directories(model_);
    config_ = {{"model_type", "unheard-of"}, {"depth", 4},        {"width", 32},       {"query_heads", 4},
               {"shared_heads", 2},          {"inner_width", 48}, {"words", 40},       {"epsilon", 1e-5},
               {"curve", "gelu_new"},        {"word_scale", 5.5}, {"bos_token_id", 1}, {"eos_token_id", 2}};
    tensors_ = toy_tensors(small_, options_);
    recipe_ = read_object(kToy);
    write();
  }
  void write() {
    write_text(model_ + "/config.json", config_.dump());
    write_safetensors(model_ + "/model.safetensors", tensors_);
    write_text(file_, recipe_.dump());
  }
  Result<Bytes> converted() {
    QSF_LET(model, convert::open_model(model_, false, file_));
    convert::Options options;
    options.matrices = FormatId::f32;
    options.segment_bytes = options_.segment_bytes;
    const std::string path = folder_.path("out.qsf");
    QSF_TRY(convert_file(model, options, path));
    return read_bytes(path);
  }
  void expect(ErrorCode code, const std::string& part) {
    write();
    const Result<Bytes> file = converted();
    ASSERT_FALSE(file) << part;
    EXPECT_EQ(error_of(file).code, code) << file.error().sentence;
    EXPECT_NE(std::strstr(error_of(file).sentence, part.c_str()), nullptr) << file.error().sentence;
  }

  const Folder folder_;
  const std::string model_ = folder_.path("model"), file_ = folder_.path("recipe.json");
  SmallOptions options_;
  SmallFile small_;
  FileSpec source_;
  json config_, recipe_;
  Tensors tensors_;
};

// A file written without the converter, but for what a converter says of a model's origin: the same bytes, and so the
// same logits.
TEST_F(ToyRecipe, GivesTheFileThatIsWrittenDirectly) {
  source_.header.arch = Arch::custom;
  source_.header.activation = Activation::gelu;
  source_.meta = {{"norm.epsilon", MetaType::f32, 0, 1e-5f, {}},
                  {"general.architecture", MetaType::text, 0, 0, "toy"},
                  {"general.name", MetaType::text, 0, 0, "model"},
                  {"general.source", MetaType::text, 0, 0, "safetensors"}};
  Bytes direct;
  ASSERT_TRUE(write_file(source_, memory_sink(direct), {}));
  const Result<Bytes> file = converted();
  ASSERT_TRUE(file) << file.error().sentence;
  EXPECT_TRUE(*file == direct);
  const Written written = read_written(folder_.path("out.qsf"));
  ASSERT_EQ(written.tables.table.kinds.size(), 3u);
  EXPECT_EQ(written.tables.table.of_layer, (std::vector<std::uint8_t>{0, 1, 2, 1}));
  EXPECT_EQ(written.tables.table.model.embedding_scale, 5.5f);
}

TEST_F(ToyRecipe, NamesWhatIsMissingAndWhatHasNoPlace) {
  const Tensors all = tensors_;
  tensors_["trunk.2.mix.out"] = tensors_["trunk.1.mix.out"];  // of the layer without attention
  expect(ErrorCode::unsupported, "trunk.2.mix.out has no place");
  tensors_ = all;
  tensors_.erase("trunk.3.think.norm");
  expect(ErrorCode::bad_input, "trunk.3.think.norm is missing");
  tensors_ = all;
  tensors_.erase("trunk.1.mix.shift");
  expect(ErrorCode::bad_input, "trunk.1.mix.shift is missing");
  tensors_ = all;
  recipe_["tensors"].erase("ffn_post_norm");
  tensors_.erase("trunk.0.think.norm");
  expect(ErrorCode::unsupported, "think.norm has no place");
  recipe_["tensors"]["ffn_up"] = nullptr;
  expect(ErrorCode::unsupported, "think.up has no place");
}

TEST_F(ToyRecipe, SaysWhichRoleHasNoName) {
  recipe_["tensors"].erase("ffn_post_norm");
  recipe_["ignored"].push_back("think.norm");
  expect(ErrorCode::bad_input, "ffn_post_norm, for which the recipe toy has no name");
}

TEST_F(ToyRecipe, ConfigurationsMustHoldWhatTheRecipeAsksFor) {
  const json before = config_;
  config_.erase("epsilon");
  expect(ErrorCode::bad_input, "\"epsilon\" is missing");
  config_ = before;
  config_["curve"] = "softplus";
  expect(ErrorCode::unsupported, "the activation \"softplus\" is not supported");
  config_["curve"] = json::array();
  expect(ErrorCode::bad_input, "\"curve\" is a list");
  config_ = before;
  config_["word_scale"] = 1e30;
  expect(ErrorCode::bad_input, "from 0 to 1000000");
  config_ = before;
  config_["depth"] = "four";
  expect(ErrorCode::bad_input, "\"depth\" is \"four\"; it must be a whole number");
  config_["depth"] = 2;
  expect(ErrorCode::bad_input, "layer 2, but there are 2");
}

TEST_F(ToyRecipe, PartsAreEachRowOnce) {
  const json before = recipe_;
  const auto rows = [&](const json& value) {
    recipe_ = before;
    recipe_["tensors"]["attn_v"]["rows"] = value;
  };
  rows({"heads", "heads + kv_heads"});
  expect(ErrorCode::bad_input, "trunk.0.mix.qkv are not each of its 64 rows once");
  rows({"heads + kv_heads", 63});
  expect(ErrorCode::bad_input, "trunk.0.mix.qkv are not each of its 64 rows once");
  recipe_ = before;
  for (const char* role : {"attn_q", "attn_k", "attn_v"}) recipe_["tensors"][role]["rows"] = {0, 64};
  expect(ErrorCode::bad_input, "trunk.0.mix.qkv are not each of its 64 rows once");
  rows({"heads + kv_heads", "heads + 3 kv_heads"});
  expect(ErrorCode::bad_input, "64 rows, but the recipe takes those from 48 to 80");
  rows({40, 40});
  expect(ErrorCode::bad_input, "from 40 to 40");
  recipe_ = before;
  recipe_["tensors"]["attn_k"]["rows"] = {"heads", 40};
  recipe_["tensors"]["attn_v"]["rows"] = {40, 64};
  expect(ErrorCode::bad_input, "the model's sizes say");
  recipe_ = before;
  recipe_["tensors"]["attn_v"].erase("rows");
  expect(ErrorCode::bad_input, "not each of its 64 rows once");
  recipe_ = before;
  recipe_["tensors"]["ffn_post_norm"]["transposed"] = true;
  expect(ErrorCode::bad_input, "think.norm has 1 dimensions");
}

TEST_F(ToyRecipe, WhatIsNoRecipeIsRefusedByName) {
  struct Case {
    std::function<void(json&)> damage;
    const char* part;
  };
  const std::vector<Case> cases{
      {[](json& r) { r = json::array(); }, "\"recipe\" is not an object"},
      {[](json& r) { r.erase("name"); }, "no \"name\""},
      {[](json& r) { r["name"] = ""; }, "\"name\" must be a text"},
      {[](json& r) { r["name"] = std::string(300, 'a'); }, "\"name\" must be a text"},
      {[](json& r) { r["name"] = "a\nb"; }, "\"name\" must be a text"},
      {[](json& r) { r["arch"] = "toy"; }, "\"arch\" must be one of gpt2, llama"},
      {[](json& r) { r["layres"] = json::object(); }, "no key \"layres\""},
      {[](json& r) { r["layer"]["nrom"] = 1; }, "\"layer\" has no key \"nrom\""},
      {[](json& r) { r["layer"]["norm_place"] = "middle"; }, "one of before, after, both"},
      {[](json& r) { r["layer"]["norm_place"] = 5; }, "\"norm_place\" is 5"},
      {[](json& r) { r["layer"]["norm_place"] = true; }, "\"norm_place\" is true"},
      {[](json& r) { r["layer"]["window"] = 1.5; }, "\"window\" is 1.5; it must be a whole number"},
      {[](json& r) { r["layer"]["window"] = -1; }, "\"window\" is -1"},
      {[](json& r) { r["layer"]["n_heads"] = 4294967296u; }, "\"n_heads\" is 4294967296"},
      {[](json& r) { r["layer"]["norm_epsilon"] = "small"; }, "must be a number from 0 to 1"},
      {[](json& r) { r["layer"]["norm_epsilon"] = 0; }, "norm_epsilon is 0"},
      {[](json& r) { r["layer"]["n_kv_heads"] = 3; }, "not a multiple of n_kv_heads 3"},
      {[](json& r) { r["layer"]["window"] = {{"key", "x"}}; }, "\"window\" has no key \"key\""},
      {[](json& r) { r["layer"]["window"] = {{"default", 3}}; }, "neither \"config\" nor \"gguf\""},
      {[](json& r) { r["layer"]["window"] = {{"gguf", "w"}}; }, "does not say where this source has \"window\""},
      {[](json& r) { r["layer"]["window"] = {{"config", 3}}; }, "\"config\" must be a text"},
      {[](json& r) { r["layer"]["layers"] = {1}; }, "\"layer\" has no key \"layers\""},
      {[](json& r) { r["model"]["scale"] = 1; }, "\"model\" has no key \"scale\""},
      {[](json& r) { r["sizes"]["depth"] = 1; }, "\"sizes\" has no key \"depth\""},
      {[](json& r) { r["sizes"]["ffn_dim"] = {{"config", "inner"}, {"default", "2 heads + 3 dim"}}; },
       "a number of dim"},
      {[](json& r) { r["sizes"]["dim"] = 0; }, "\"dim\" is 0"},
      {[](json& r) { r["tensors"]["attn_w"] = "w"; }, "there is no role \"attn_w\""},
      {[](json& r) { r["tensors"]["attn_o"] = "out"; }, "0 times {}, not 1"},
      {[](json& r) { r["tensors"]["attn_o"] = "a.{}.b.{}"; }, "2 times {}, not 1"},
      {[](json& r) { r["tensors"]["final_norm"] = "norm.{}"; }, "1 times {}, not 0"},
      {[](json& r) { r["tensors"]["attn_o"] = 3; }, "\"attn_o\" must be a text"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"hf", "x"}}; }, "\"attn_o\" has no key \"hf\""},
      {[](json& r) { r["tensors"]["attn_o"] = {{"transposed", 1}}; }, "\"transposed\" must be true or false"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"use", "sometimes"}}; }, "never, optional, always"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", 3}}; }, "\"rows\" must be a list of two"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", {0, "legs"}}}; }, "\"legs\" is no sum of rows"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", {0, "heads +"}}}; }, "\"heads +\" is no sum"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", {0, "99999999999 dim"}}}; }, "is no sum of rows"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", {0, "dim+dim+dim+dim+dim+dim+dim+dim+dim"}}}; }, "is no sum"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"rows", {-1, 3}}}; }, "\"rows\" must be a whole number"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"also", "out.{}"}}; }, "\"also\" must be a short list"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"also", {{{"use", "always"}}}}}; }, "\"also\" has no key \"use\""},
      {[](json& r) { r["tensors"]["attn_o"] = {{"also", {{{"gguf", "out"}}}}}; }, "0 times {}, not 1"},
      {[](json& r) { r["tensors"]["attn_o"] = {{"beside", "other"}}; }, "0 times {}, not 1"},
      {[](json& r) { r["layer"]["window"] = {{"gguf", "w"}, {"gguf_over", 2}}; }, "\"gguf_over\" must be a text"},
      {[](json& r) { r["like"] = "nothing"; }, "\"like\" must name a recipe"},
      {[](json& r) { r["like"] = 3; }, "\"like\" must name a recipe"},
      {[](json& r) { r["tensors"] = "all"; }, "\"tensors\" is not an object"},
      {[](json& r) { r["exceptions"] = json::object(); }, "\"exceptions\" must be a list"},
      {[](json& r) { r["exceptions"] = json(256, json::object()); }, "a list of at most 255"},
      {[](json& r) { r["exceptions"][0].erase("layers"); }, "must be a list of layers"},
      {[](json& r) { r["exceptions"][0]["layers"] = {{"from", 1}}; }, "\"layers\" has no \"every\""},
      {[](json& r) { r["exceptions"][0]["layers"] = {{"every", 0}}; }, "\"every\" must be a whole number from 1"},
      {[](json& r) { r["exceptions"][0]["layers"] = {-1}; }, "\"layers\" must be a whole number"},
      {[](json& r) { r["exceptions"][0]["layers"] = {4}; }, "speaks of layer 4, but there are 4"},
      {[](json& r) { r["exceptions"][1]["mixer"] = "magic"; }, "one of attention, none"},
      {[](json& r) { r["ignored"] = "all"; }, "\"ignored\" must be a short list"},
      {[](json& r) { r["interleaved_rope"] = {"pytorch"}; }, "one of hugging_face, gguf"},
      {[](json& r) { r["window_rule"] = "wide"; }, "one of none, sliding_window"},
      {[](json& r) { r["default_theta"] = "large"; }, "\"default_theta\" must be a number"},
      {[](json& r) { r["default_window"] = -3; }, "\"default_window\" must be a whole number"},
  };
  const json before = recipe_;
  for (const Case& c : cases) {
    recipe_ = before;
    c.damage(recipe_);
    expect(ErrorCode::bad_input, c.part);
  }
}

TEST_F(ToyRecipe, MaliciousJsonIsRefused) {
  const auto refused = [&](const std::string& text, const char* part) {
    write_text(file_, text);
    const Result<Bytes> file = converted();
    ASSERT_FALSE(file) << part;
    EXPECT_EQ(error_of(file).code, ErrorCode::bad_input) << file.error().sentence;
    EXPECT_NE(std::strstr(error_of(file).sentence, "recipe.json"), nullptr) << file.error().sentence;
    EXPECT_NE(std::strstr(error_of(file).sentence, part), nullptr) << file.error().sentence;
  };
  refused("", "not valid JSON");
  refused(R"({"name": "toy", "layer": {"window": 1e999}})", "not valid JSON");
  refused(R"({"name": "toy", "layer": {"window": 1e300}})", "\"window\" is 1e+300");
  refused(std::string(1u << 20, '['), "deep");
  refused(R"({"name": ")" + std::string(5u << 20, 'a') + "\"}", "a text of");
  std::filesystem::resize_file(file_, (256u << 20) + 1);
  const Result<Bytes> file = converted();
  ASSERT_FALSE(file);
  EXPECT_NE(std::strstr(error_of(file).sentence, "bytes of JSON are too many"), nullptr) << file.error().sentence;
}

TEST_F(ToyRecipe, FileMustBeThereAndIsNotOverwritten) {
  const Result<convert::LoadedModel> model = convert::open_model(model_, false, file_);
  ASSERT_TRUE(model) << model.error().sentence;
  const Result<convert::Summary> over = convert_file(*model, {}, file_);
  ASSERT_FALSE(over);
  EXPECT_EQ(error_of(over).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(convert::open_model(model_, false, folder_.path("none.json"))).code, ErrorCode::io_error);
}

TEST(RecipeFile, EveryOneThatIsCompiledInIsKnown) {
  for (const auto& [file, text] : convert::recipe_texts()) {
    const Result<convert::Json> json = convert::parse_json(text, file);
    ASSERT_TRUE(json) << json.error().sentence;
    const Result<convert::Recipe> recipe = convert::read_recipe(*json, file);
    ASSERT_TRUE(recipe) << recipe.error().sentence;
    EXPECT_NE(convert::find_recipe(recipe->name), nullptr) << file;
  }
  EXPECT_EQ(convert::recipe_texts().size(), convert::known_recipes().size());
}

// The recipes that are compiled in, in the form of a file.
TEST(RecipeFile, SaysWhatCompiledInRecipesSay) {
  const json never = {{"use", "never"}}, always = {{"use", "always"}};
  const json biases = {{"attn_q_bias", never}, {"attn_k_bias", never}, {"attn_v_bias", never},
                       {"attn_o_bias", never}, {"attn_q_norm", never}, {"attn_k_norm", never}};
  const std::vector<std::pair<std::string, json>> recipes{
      {"llama",
       {{"name", "llama"},
        {"arch", "llama"},
        {"interleaved_rope", {"gguf"}},
        {"tensors", {{"attn_q_norm", never}, {"attn_k_norm", never}}}}},
      {"mistral",
       {{"name", "mistral"},
        {"arch", "mistral"},
        {"window_rule", "sliding_window"},
        {"default_window", 4096},
        {"tensors", biases}}},
      {"qwen3", {{"name", "qwen3"}, {"tensors", {{"attn_q_norm", always}, {"attn_k_norm", always}}}}},
      {"qwen3", {{"name", "qwen3"}, {"like", "qwen3"}}},
  };
  for (const auto& [fixture, recipe] : recipes) {
    const Folder folder;
    write_text(folder.path("recipe.json"), recipe.dump());
    const std::string from = kSource + "/tests/data/" + fixture;
    const Result<convert::LoadedModel> model = convert::open_model(from, true, folder.path("recipe.json"));
    ASSERT_TRUE(model) << model.error().sentence;
    const Result<convert::Summary> done = convert_file(*model, {}, folder.path("out.qsf"));
    ASSERT_TRUE(done) << done.error().sentence;
    const Written written = convert(from, {});
    EXPECT_TRUE(read_bytes(folder.path("out.qsf")) == written.file) << fixture;
    EXPECT_EQ(find_section(written.tables.sections, kTagLayers), nullptr) << fixture;
  }
}

TEST(RecipeFile, HoldsForGguf) {
  const Folder folder;
  const std::string recipe = folder.path("recipe.json"), from = folder.path("model.gguf");
  json form = {{"name", "mine"},
               {"arch", "llama"},
               {"interleaved_rope", {"gguf"}},
               {"sizes", {{"ffn_dim", {{"gguf", "inner"}}}}},
               {"layer", {{"activation", {{"gguf", "curve"}}}, {"residual", {{"gguf", "side_by_side"}}}}},
               {"model", {{"logit_scale", {{"gguf", "sharpness"}, {"default", 1}}}}}};
  write_text(recipe, form.dump());
  std::map<std::string, Weights> weights;
  GgufWriter writer = gguf_of(kSource + "/tests/data/llama", GgmlType::f32, weights);
  writer.u32("llama.inner", read_config(kSource + "/tests/data/llama")["intermediate_size"]);
  writer.text("llama.curve", "relu");
  write_bytes(from, writer.file());
  const Result<convert::LoadedModel> missing = convert::open_model(from, true, recipe);
  ASSERT_FALSE(missing);
  EXPECT_NE(std::strstr(error_of(missing).sentence, "\"llama.side_by_side\" is missing"), nullptr)
      << missing.error().sentence;

  writer.flag("llama.side_by_side", true);
  writer.f32("llama.sharpness", 0.25f);
  write_bytes(from, writer.file());
  const Result<convert::LoadedModel> model = convert::open_model(from, true, recipe);
  ASSERT_TRUE(model) << model.error().sentence;
  ASSERT_TRUE(convert_file(*model, {}, folder.path("out.qsf")));
  const Written own = read_written(folder.path("out.qsf")), usual = convert(from, {});
  EXPECT_EQ(own.tables.header.activation, Activation::relu);
  ASSERT_EQ(own.tables.table.kinds.size(), 1u);
  EXPECT_EQ(own.tables.table.kinds[0].residual, Residual::parallel);
  EXPECT_EQ(own.tables.table.model.logit_scale, 0.25f);
  ASSERT_EQ(own.weights.size(), usual.weights.size());
  for (const auto& [key, tensor] : usual.weights) EXPECT_EQ(own.weights.at(key).values, tensor.values);
}

// Whatever rows are asked for, and in order the source is read once.
TEST(Parts, ATurnedTensorIsReadOnce) {
  constexpr std::uint32_t kRows = 5, kCols = 7;
  std::array<float, kRows * kCols> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::uint32_t n_read = 0;
  convert::LoadedTensor tensor;
  tensor.format = FormatId::f32;
  tensor.shape = {kRows, kCols};
  tensor.rows_of = [&](std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) -> Status {
    n_read += n;
    std::memcpy(out.data(), &values[std::size_t{begin} * kCols], out.size());
    return {};
  };
  convert::TensorPart part;
  part.transposed = part.plus_one = true;
  const convert::LoadedTensor turned =
      convert::part_of(tensor, part, {1, 6}, std::make_shared<convert::TurnedWindow>());
  EXPECT_EQ(turned.shape, (std::vector<std::uint64_t>{5, kRows}));
  const auto check = [&](std::uint32_t begin, std::uint32_t n) {
    std::vector<float> rows(std::size_t{n} * kRows);
    ASSERT_TRUE(turned.rows_of(begin, n, std::as_writable_bytes(std::span(rows))));
    for (std::uint32_t r = 0; r < n; ++r) {
      for (std::uint32_t c = 0; c < kRows; ++c) EXPECT_EQ(rows[r * kRows + c], values[c * kCols + begin + r + 1] + 1);
    }
  };
  check(0, 2);
  check(2, 2);
  check(4, 1);
  EXPECT_EQ(n_read, kRows);
  check(3, 2);
  check(1, 1);
}

TEST(RecipeFile, NamesAreThoseOfTheNaming) {
  const convert::Recipe* llama = convert::find_recipe("llama");
  ASSERT_NE(llama, nullptr);
  EXPECT_EQ(convert::find_recipe("toy"), nullptr);
  EXPECT_EQ(convert::name_of(*llama, convert::Naming::gguf, Role::attn_o, 3), "blk.3.attn_output.weight");
  EXPECT_EQ(convert::name_of(*llama, convert::Naming::gguf, Role::attn_post_norm, 3), "");
}

}  // namespace
}  // namespace qsf::test
