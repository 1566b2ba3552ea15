// Logits and tokens equal Hugging Face's: the fixtures of every architecture, the built-in model, and where the shared
// data lies beside the project, a trained model from every input type.
#include "engine/golden.h"

#include <filesystem>

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

struct FixtureCase {
  const char* name;
  std::uint16_t (*rounded)(float);  // how golden.f32's RoPE frequencies were rounded; null where they were not
  float (*widened)(std::uint16_t);
  std::uint32_t head_dim;
};
class Fixture : public ::testing::TestWithParam<FixtureCase> {};

/// Logits of a prompt, all positions.
Generation prompt_logits(Host& host, const Ids& ids) {
  Prompt prompt = greedy(ids, 0);
  prompt.all_logits = true;
  return host.generate(prompt);
}

/// Divisors that turn RoPE's frequencies into their rounding to bf16 or f16.
std::vector<float> rounding_divisors(const FixtureCase& fixture) {
  std::vector<float> divisors;
  for (std::uint32_t i = 0; i < fixture.head_dim / 2; ++i) {
    const auto frequency = static_cast<float>(std::pow(10000.0, -2.0 * i / fixture.head_dim));
    divisors.push_back(frequency / fixture.widened(fixture.rounded(frequency)));
  }
  return divisors;
}

void expect_logits(std::span<const std::byte> file, const nlohmann::json& golden, std::span<const float> logits) {
  OpenOptions options;
  options.all_logits = true;
  Host host(file, 32 * kMiB, options);
  for (const auto& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"];
    ASSERT_TRUE(host.session->rewind(0));
    const Generation run = prompt_logits(host, ids);
    ASSERT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
    const std::size_t n = ids.size() * golden["vocab"].get<std::size_t>();
    EXPECT_LT(relative_difference(run.logits, logits.subspan(prompt["logits_offset"], n)), 1e-4);
  }
}

TEST_P(Fixture, LogitsEqualHuggingFaces) {
  const std::string path = kSource + "/tests/data/" + GetParam().name;
  const nlohmann::json golden = read_json(path + "/golden.json");
  ASSERT_EQ(golden["prompts"].size(), 3u);
  const std::vector<float> logits = read_floats(path + "/golden.f32");
  if (GetParam().rounded == nullptr) {
    expect_logits(converted(path, FormatId::f32), golden, logits);
  } else {
    expect_logits(converted(path, FormatId::f32), golden, read_floats(path + "/loaded.f32"));
    expect_logits(converted(path, FormatId::f32, rounding_divisors(GetParam())), golden, logits);
  }
}

TEST_P(Fixture, GreedyTokensAndTokenIdsEqualHuggingFaces) {
  const std::string path = kSource + "/tests/data/" + GetParam().name;
  const nlohmann::json golden = read_json(path + "/golden.json");
  const std::vector<std::byte> file = converted(path, FormatId::f32);
  Host host(file, 32 * kMiB, {});
  for (const auto& prompt : golden["prompts"]) {
    const Ids ids = prompt["ids"], expected = prompt["greedy"];
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_EQ(host.generate(greedy(ids, 32)).tokens, expected);
    Ids encoded(256);
    const auto count = host.session->tokenize(prompt["text"].get<std::string>(), true, encoded);
    ASSERT_TRUE(count) << count.error().sentence;
    encoded.resize(*count);
    EXPECT_EQ(encoded, ids);
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Fixture,
                         ::testing::Values(FixtureCase{"llama", f32_to_bf16, bf16_to_f32, 32},
                                           FixtureCase{"llama3-rope", nullptr, nullptr, 32},
                                           FixtureCase{"mistral", f32_to_bf16, bf16_to_f32, 32},
                                           FixtureCase{"qwen2", f32_to_f16, f16_to_f32, 32},
                                           FixtureCase{"qwen3", nullptr, nullptr, 48}),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

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

}  // namespace
}  // namespace qsf::test
