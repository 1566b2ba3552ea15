// Options of sampling in a session: refused ones, biases with a set of allowed tokens, and texts that end repetitions.
#include <algorithm>
#include <limits>

#include "chat/talking_model.h"
#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
using Ids = std::vector<std::uint32_t>;

TEST(Sampling, OptionsAreChecked) {
  const SmallFile file = small_file();  // 40 tokens
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids{1, 2};
  Prompt prompt = greedy(ids, 1);
  const TokenBias outside[] = {{39, 1}, {40, 1}}, infinite[] = {{1, -kNever}};
  prompt.sampler.logit_bias = outside;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::bad_token);
  EXPECT_STREQ(error_of(host.session->start(prompt)).sentence, "token 40 is not in the vocabulary of 40");
  prompt.sampler.logit_bias = infinite;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::bad_argument);
  prompt = greedy(ids, 1);
  prompt.sampler.repeat_last_n = -2;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::bad_argument);
  EXPECT_EQ(host.generate(greedy(ids, 1)).tokens.size(), 1u);
}

TEST(Sampling, BiasesForbidAndForceTokens) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids{3, 9, 4};
  const Ids plain = host.generate(greedy(ids, 6)).tokens;
  std::vector<TokenBias> biases;
  for (const std::uint32_t id : plain) biases.push_back({id, kNever});
  Prompt prompt = greedy(ids, 6);
  prompt.sampler.logit_bias = biases;
  ASSERT_TRUE(host.session->rewind(0));
  const Ids others = host.generate(prompt).tokens;
  EXPECT_EQ(others.size(), 6u);
  for (const std::uint32_t id : others) EXPECT_EQ(std::ranges::find(plain, id), plain.end());
  const TokenBias forced[] = {{17, 3e38f}};
  prompt.sampler.logit_bias = forced;
  ASSERT_TRUE(host.session->rewind(0));
  EXPECT_EQ(host.generate(prompt).tokens, Ids(6, 17));
}

TEST(Sampling, EndsIfNoTokenIsLeft) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids{3, 9, 4};
  const std::uint64_t allowed[] = {1ull << 5 | 1ull << 8};
  const TokenBias biases[] = {{5, kNever}, {7, 3e38f}};
  for (const float temperature : {0.0f, 1.0f}) {
    Prompt prompt = greedy(ids, 6);
    prompt.sampler.temperature = temperature;
    prompt.sampler.logit_bias = biases;
    prompt.allowed = allowed;
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_EQ(host.generate(prompt).tokens, Ids(6, 8));
    const TokenBias both[] = {{5, kNever}, {8, kNever}};
    prompt.sampler.logit_bias = both;
    ASSERT_TRUE(host.session->rewind(0));
    EXPECT_TRUE(host.generate(prompt).tokens.empty());
    EXPECT_TRUE(host.session->end() == End::stop);
  }
}

TEST(Sampling, RepetitionsEndAtTheTextsOfTheModelsTokens) {
  const SmallFile file = chat::test::talking_model({});
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids = chat::test::ids_of("abc.abc.ab");
  const std::uint32_t c = chat::test::ids_of("c")[0];
  // A bias makes c the next token, except if the penalty on a repetition is larger.
  const TokenBias biases[] = {{c, 1000}};
  const auto next = [&](std::vector<std::string_view> breakers) {
    Prompt prompt = greedy(ids, 1);
    prompt.sampler.logit_bias = biases;
    prompt.sampler.dry_multiplier = 2000;
    prompt.sampler.dry_sequence_breakers = breakers;
    EXPECT_TRUE(host.session->rewind(0));
    return host.generate(prompt).tokens.at(0);
  };
  EXPECT_NE(next({}), c);
  EXPECT_NE(next({"."}), c);
  EXPECT_NE(next({".c", "x"}), c);
  EXPECT_EQ(next({"a"}), c);
  EXPECT_EQ(next({"x", "c.ab"}), c);
  EXPECT_EQ(next({"c"}), c);
}

}  // namespace
}  // namespace qsf::test
