// Logits and tokens equal Hugging Face's: the fixtures of every architecture, the built-in model, and where the shared
// data lies beside the project, a trained model from every input type.
#include "engine/golden.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "native/temp.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

/// The golden values of Falcon are those of transformers' eager attention, which adds ALiBi's bias in its mask and once
/// more to the scores: the recipe says 2 / sqrt(head_dim) where a user's says what the model was trained with.
std::vector<std::byte> eager_falcon(const std::string& directory) {
  const TempDir temp;
  nlohmann::json recipe = read_json(kSource + "/converter/recipes/falcon.json");
  recipe["layer"]["alibi_scale"] = 2 / std::sqrt(32.0);
  std::ofstream(temp / "falcon.json") << recipe;
  return converted(directory, FormatId::f32, temp / "falcon.json");
}

/// Bamba was trained with half of each head rotated, as its configuration says. transformers 5 rotates whole heads.
std::vector<std::byte> wholly_rotated_bamba(const std::string& directory) {
  const TempDir temp;
  nlohmann::json recipe = read_json(kSource + "/converter/recipes/bamba.json");
  recipe["layer"]["rope_dims"] = 16;
  std::ofstream(temp / "bamba.json") << recipe;
  return converted(directory, FormatId::f32, temp / "bamba.json");
}

/// Directories of tests/data, and GGUF files of tests/data/gguf with the golden data of the directory of their name.
class Fixture : public ::testing::TestWithParam<std::string> {
 protected:
  std::string folder() const {
    const std::string name = GetParam();
    return kSource + "/tests/data/" + name.substr(0, name.ends_with(".gguf") ? name.size() - 5 : name.size());
  }
  std::string model() const {
    return GetParam().ends_with(".gguf") ? kSource + "/tests/data/gguf/" + GetParam() : folder();
  }
  nlohmann::json golden() const { return read_json(folder() + "/golden.json"); }
  std::vector<std::byte> file() const {
    if (GetParam() == "bamba") return wholly_rotated_bamba(model());
    return GetParam() == "falcon" ? eager_falcon(model()) : converted(model(), FormatId::f32);
  }
};

/// Logits of a prompt, all positions.
Generation prompt_logits(Host& host, const Ids& ids) {
  Prompt prompt = greedy(ids, 0);
  prompt.all_logits = true;
  return host.generate(prompt);
}

TEST_P(Fixture, LogitsEqualHuggingFaces) {
  const nlohmann::json golden = this->golden();
  ASSERT_EQ(golden["prompts"].size(), 3u);
  const std::vector<float> logits = read_floats(folder() + "/golden.f32");
  const std::vector<std::byte> file = this->file();
  OpenOptions options;
  options.all_logits = true;
  Host host(file, 32 * kMiB, options);
  for (const auto& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    ASSERT_TRUE(host.session->rewind(0));
    const Generation run = prompt_logits(host, ids);
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    const std::size_t n = ids.size() * golden["vocab"].get<std::size_t>();
    EXPECT_LT(relative_difference(run.logits, std::span(logits).subspan(prompt["logits_offset"], n)), 1e-4);
  }
}

TEST_P(Fixture, GreedyTokensEqualHuggingFaces) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const nlohmann::json golden = this->golden();
  for (const auto& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    Ids expected = prompt["greedy"];
    // By default phi4-mini's context ends where transformers goes over to its long factors.
    const std::size_t left = host.session->stats().max_seq_len - ids.size();
    expected.resize(std::min(expected.size(), left));
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_EQ(host.generate(greedy(ids, 32)).tokens, expected);
  }
}

TEST_P(Fixture, TokenIdsEqualHuggingFaces) {
  const std::vector<std::byte> file = this->file();
  Host host(file, 32 * kMiB, {});
  const nlohmann::json golden = this->golden();
  for (const auto& prompt : golden["prompts"]) {
    Ids encoded(256);
    const auto count = host.session->tokenize(prompt["text"].get<std::string>(), true, encoded);
    ASSERT_TRUE(count) << count.error().sentence;
    encoded.resize(*count);
    EXPECT_EQ(encoded, prompt["ids"].get<Ids>());
  }
}

std::string case_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Directories, Fixture,
                         ::testing::Values("apertus", "arcee", "bailing-moe", "bailing-moe-v2", "bamba", "bitnet",
                                           "bloom", "cohere", "cohere2", "deepseek-v2", "deepseek-v3", "dots1",
                                           "ernie4_5", "ernie4_5-moe", "exaone-moe", "exaone4", "falcon", "falcon-40b",
                                           "falcon-h1", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gemma4-moe",
                                           "glm4", "glm4-moe", "glm4-moe-lite", "gpt-neox", "gpt-oss", "gpt2", "gptj",
                                           "granite", "granite-hybrid", "granite-hybrid-moe", "granitemoe",
                                           "granitemoeshared", "helium", "hunyuan", "hunyuan-moe", "internlm2",
                                           "internlm3", "jamba", "lfm2", "lfm2-moe", "llama", "llama3-rope", "llama4",
                                           "mamba2", "minicpm", "minicpm3", "minimax", "minimax-m2", "ministral3",
                                           "mistral", "mixtral", "mpt", "nemotron", "nemotron-h", "nemotron-h-moe",
                                           "olmo2", "olmo3", "olmoe", "phi", "phi3", "phi4-mini", "phimoe", "qwen2",
                                           "qwen2-moe", "qwen3", "qwen3-moe", "qwen3-next", "qwen3.5", "qwen3.5-moe",
                                           "seed-oss", "smollm3", "solar-open", "stablelm", "starcoder2", "yarn"),
                         case_name);
INSTANTIATE_TEST_SUITE_P(
    Gguf, Fixture,
    ::testing::Values("apertus.gguf", "arcee.gguf", "bailing-moe.gguf", "bailing-moe-v2.gguf", "bloom.gguf",
                      "cohere.gguf", "cohere2.gguf", "deepseek-v2.gguf", "deepseek-v3.gguf", "dots1.gguf",
                      "ernie4_5.gguf", "ernie4_5-moe.gguf", "exaone-moe.gguf", "exaone4.gguf", "falcon-40b.gguf",
                      "falcon-h1.gguf", "gemma.gguf", "gemma3n.gguf", "gemma4.gguf", "gemma4-moe.gguf", "glm4.gguf",
                      "glm4-moe.gguf", "glm4-moe-lite.gguf", "gpt-neox.gguf", "gpt-oss.gguf", "gpt2.gguf",
                      "granite.gguf", "granite-hybrid.gguf", "granite-hybrid-moe.gguf", "granitemoe.gguf",
                      "granitemoeshared.gguf", "hunyuan.gguf", "hunyuan-moe.gguf", "internlm2.gguf", "internlm3.gguf",
                      "jamba.gguf", "lfm2.gguf", "lfm2-moe.gguf", "llama.gguf", "llama3-rope.gguf", "mamba2.gguf",
                      "minicpm.gguf", "minicpm3.gguf", "minimax-m2.gguf", "ministral3.gguf", "mixtral.gguf",
                      "nemotron.gguf", "nemotron-h.gguf", "nemotron-h-moe.gguf", "olmo2.gguf", "olmo3.gguf",
                      "olmoe.gguf", "phi.gguf", "phi3.gguf", "phimoe.gguf", "qwen2.gguf", "qwen2-moe.gguf",
                      "qwen3.gguf", "qwen3-moe.gguf", "qwen3-next.gguf", "qwen3.5.gguf", "qwen3.5-moe.gguf",
                      "seed-oss.gguf", "smollm3.gguf", "solar-open.gguf", "stablelm.gguf", "starcoder2.gguf",
                      "yarn.gguf"),
    case_name);

/// GGUF leaves settings out: Gemma's scale of attention and the layers that have a window, and the size of Llama 4's
/// windows and the growth of its queries. What llama.cpp takes for granted is put into the directory's configuration
/// instead.
TEST(Gguf, SomeAreTheDirectoryUnderWhatGgufLeavesOut) {
  for (const std::string name : {"gemma2", "gemma3", "llama4"}) {
    const TempDir temp;
    const std::string folder = temp / name;
    std::filesystem::copy(kSource + "/tests/data/" + name, folder);
    nlohmann::json config = read_json(folder + "/config.json");
    if (name == "llama4") {
      config["attention_chunk_size"] = config["floor_scale"] = 8192;
    } else {
      config["query_pre_attn_scalar"] = config["head_dim"];
      for (const char* key : {"layer_types", "sliding_window_pattern", "_sliding_window_pattern"}) config.erase(key);
    }
    std::ofstream(folder + "/config.json") << config;
    const Ids ids = read_json(folder + "/golden.json")["prompts"][0]["ids"];
    const auto logits = [&](const std::string& path) {
      const std::vector<std::byte> file = converted(path, FormatId::f32);
      OpenOptions options;
      options.all_logits = true;
      Host host(file, 32 * kMiB, options);
      return prompt_logits(host, ids).logits;
    };
    const std::vector<float> expected = logits(folder);
    ASSERT_FALSE(expected.empty());
    EXPECT_LT(relative_difference(logits(kSource + "/tests/data/gguf/" + name + ".gguf"), expected), 1e-5);
  }
}

TEST(BuiltIn, GreedyTokensEqualHuggingFacesAtF32AndF16) {
  const std::string path = kSource + "/models/stories";
  const nlohmann::json golden = read_json(path + "/golden.json");
  for (const FormatId format : {FormatId::f32, FormatId::f16}) {
    const std::vector<std::byte> file = converted(path, format);
    for (const auto& prompt : golden["prompts"]) {
      OpenOptions options;
      options.all_logits = true;
      Host host(file, 64 * kMiB, options);
      const Ids ids = prompt["fed_ids"], expected = prompt["greedy_ids"];
      EXPECT_EQ(host.generate(greedy(ids, static_cast<std::uint32_t>(expected.size()))).tokens, expected);

      ASSERT_TRUE(host.session->rewind(0));
      const Generation run = prompt_logits(host, ids);
      const std::size_t vocab = host.session->stats().vocab_size;
      for (const auto& top : prompt["top10"]) {
        const std::size_t position = top["position"];
        ASSERT_LT(position, ids.size());
        const double largest = top["logits"][0];
        for (std::size_t i = 0; i < top["ids"].size(); ++i) {
          const double logit = run.logits[position * vocab + top["ids"][i].get<std::size_t>()];
          EXPECT_NEAR(logit, top["logits"][i].get<double>(), largest * 1e-3) << position;
        }
      }
    }
  }
}

TEST(BuiltIn, RunsInAnArenaSmallerThanItsWeights) {
  const std::vector<std::byte> file = converted(kSource + "/models/stories", FormatId::q8);
  const Ids ids = read_json(kSource + "/models/stories/golden.json")["prompts"][0]["fed_ids"];
  const std::uint64_t budget = 4 * kMiB;
  Host small(file, budget, {}), large(file, 64 * kMiB, {});
  ASSERT_EQ(small.error.code, ErrorCode::none) << small.error.sentence;
  ASSERT_LT(budget, small.session->stats().weight_bytes);
  EXPECT_GT(small.session->stats().ring_slots, 0u);
  EXPECT_EQ(large.session->stats().ring_slots, 0u);
  if (small.session->stats().kv == large.session->stats().kv) {
    EXPECT_EQ(small.generate(greedy(ids, 40)).hash, large.generate(greedy(ids, 40)).hash);
  } else {
    OpenOptions options;
    options.kv = small.session->stats().kv;
    Host same(file, 64 * kMiB, options);
    EXPECT_EQ(small.generate(greedy(ids, 40)).hash, same.generate(greedy(ids, 40)).hash);
  }
}

/// A trained model from every input type. Greedy ids are by float64 llama2.c (reference/greedy.json) for the float
/// weights, and by transformers on the dequantized weights (tests/engine/data) for the rounded ones.
TEST(SharedData, Stories260KFromEveryInputTypeContinuesAsTheReference) {
  const std::string data = kSource + "/../shared/data/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no shared data beside the project";
  const Ids reference = read_json(data + "derived/reference/greedy.json")["stories260K"]["input_ids"];
  const nlohmann::json rounded = read_json(kSource + "/tests/engine/data/stories260K_greedy.json");
  for (const std::string path :
       {"models/stories260K/stories260K.bin", "derived/stories260K-hf-f32", "derived/stories260K-hf-bf16-sharded",
        "derived/stories260K-f32.gguf", "derived/stories260K-f16.gguf", "derived/stories260K-q8_0.gguf",
        "derived/stories260K-q4_0.gguf"}) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const Ids expected =
        rounded.contains(name) ? rounded[name].get<Ids>() : Ids(reference.begin() + 1, reference.end());
    const std::vector<std::byte> exact = converted(data + path, FormatId::f32), carried = converted(data + path, {});
    OpenOptions options;
    options.all_logits = true;
    Host host(exact, 16 * kMiB, options);
    const Generation run = host.generate(greedy(Ids{1}, static_cast<std::uint32_t>(expected.size())));
    ASSERT_EQ(run.error.code, ErrorCode::none) << path << ": " << run.error.sentence;
    EXPECT_EQ(run.tokens, expected) << path;

    // As carried, activations are rounded to 8 bits before quantized products: near, where a misread block is far off.
    ASSERT_TRUE(host.session->rewind(0));
    Host other(carried, 16 * kMiB, options);
    EXPECT_LT(relative_difference(prompt_logits(other, expected).logits, prompt_logits(host, expected).logits), 0.05)
        << path;
  }
}

/// Trained ternary models, whose activations are rounded under one scale per token, against a float64 program. Rounding
/// is a step: where a sum's last bit moves a code, all that follows moves with it. The float64 program itself, with its
/// norms off by 2^-24 at random, parts from its own logits by up to 1.7 % after some tokens, and from its own choices
/// where the two likeliest are nearest; there either of them will do.
TEST(SharedData, TernaryModelsContinueAsTheReference) {
  const std::string data = kSource + "/../shared/data/";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no shared data beside the project";
  const nlohmann::json greedy_ids = read_json(data + "derived/reference/greedy.json");
  constexpr double kNear = 2e-3;  // of the largest logit
  for (const std::string size : {"1M", "3M"}) {
    const Ids reference = greedy_ids["bitllama" + size]["input_ids"];
    const std::vector<float> logits =
        read_floats(data + "derived/reference/bitllama" + size + "_greedy_logits_200x512.f32");
    const std::vector<std::byte> file = converted(data + "models/bitllama2/bitllama_" + size + ".bin", {});
    OpenOptions options;
    options.all_logits = true;
    options.kv = KvType::f32;
    Host host(file, 32 * kMiB, options);
    const Generation run = prompt_logits(host, Ids(reference.begin(), reference.end() - 1));
    ASSERT_EQ(run.logits.size(), logits.size());
    int n_other = 0;
    for (std::size_t t = 0; t + 1 < reference.size(); ++t) {
      const std::span<const float> ours = std::span(run.logits).subspan(t * 512, 512);
      const std::span<const float> theirs = std::span(logits).subspan(t * 512, 512);
      EXPECT_LT(relative_difference(ours, theirs), t == 0 ? 1e-6 : 0.02) << size << " " << t;
      const auto best = static_cast<std::size_t>(std::ranges::max_element(ours) - ours.begin());
      const auto [least, most] = std::ranges::minmax(theirs);
      const double loss = (theirs[reference[t + 1]] - theirs[best]) / std::max(std::fabs(least), std::fabs(most));
      EXPECT_LT(loss, kNear) << size << " " << t;
      n_other += best == reference[t + 1] ? 0 : 1;
    }
    EXPECT_LE(n_other, size == "1M" ? 0 : 2) << size;
    if (n_other != 0) continue;
    ASSERT_TRUE(host.session->rewind(0));
    const Ids expected(reference.begin() + 1, reference.end());
    EXPECT_EQ(host.generate(greedy(Ids{1}, static_cast<std::uint32_t>(expected.size()))).tokens, expected) << size;
  }
}

}  // namespace
}  // namespace qsf::test
