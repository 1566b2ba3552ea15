// Numbers that are not finite end what was to be made of them, with the position that they are of.
#include "qsf/base/finite.h"

#include <cmath>
#include <limits>

#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/farthest.h"

namespace qsf::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kHuge = 3e38f;
constexpr std::uint32_t kBad = 7;  // a token

/// Sets a weight of the embeddings' row of a token.
void set_token(SmallFile& file, std::uint32_t token, float value) {
  std::vector<float>& weights = file.weights.at({0, Role::token_embd});
  weights[token * weights.size() / 40] = value;
}

SmallOptions untied() {
  SmallOptions options;
  options.tied = false;
  return options;
}

/// The token kBad brings `value` in, whatever else a text has.
SmallFile with_a_bad_token(float value) {
  return small_file(untied(), [&](SmallFile& file) { set_token(file, kBad, value); });
}

/// Everything is beyond what floats hold.
SmallFile too_large() {
  return small_file({}, [](SmallFile& file) {
    for (auto& [of, weights] : file.weights) {
      if (of.second == Role::final_norm) std::ranges::fill(weights, kHuge);
    }
  });
}

void expect_not_finite(const Error& error, std::uint32_t position) {
  EXPECT_EQ(error.code, ErrorCode::not_finite) << error.sentence;
  const std::string wanted = "of position " + std::to_string(position) + " are not finite numbers";
  EXPECT_NE(std::string(error.sentence).find(wanted), std::string::npos) << error.sentence;
}

TEST(Finite, AValueIsSeenWhereverItIs) {
  for (std::size_t n = 0; n < 40; ++n) {
    std::vector<float> values(n, kHuge);
    if (n > 1) values[1] = -1e-45f;
    EXPECT_TRUE(all_finite(values));
    for (std::size_t i = 0; i < n; ++i) {
      for (const float bad : {kNaN, -kNaN, kInfinity, -kInfinity}) {
        const float kept = std::exchange(values[i], bad);
        EXPECT_FALSE(all_finite(values));
        values[i] = kept;
      }
    }
  }
}

TEST(Finite, ComparisonsFailOnWhatIsNot) {
  const std::vector<double> expected{1, -4, 2};
  EXPECT_EQ(farthest(std::vector<float>{1, -4, 2}, expected), 0);
  EXPECT_EQ(relative_difference(std::vector<float>{1, -4, 3}, expected), 0.25);
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    EXPECT_EQ(farthest(std::vector<float>{1, bad, 2}, expected), double{kInfinity});
    EXPECT_FALSE(relative_difference(std::vector<float>{bad, -4, 2}, expected) < 1e-4);
    EXPECT_FALSE(relative_difference(expected, std::vector<float>{1, -4, bad}) < 1e-4);
  }
  EXPECT_EQ(farthest(std::vector<float>{1, -4}, expected), double{kInfinity});
}

TEST(Finite, AGenerationEndsWithTheFirstPosition) {
  const std::vector<std::uint32_t> ids{3, 5, kBad, 9, 11};
  for (const float value : {kNaN, kInfinity, kHuge}) {
    const SmallFile file = value == kHuge ? too_large() : with_a_bad_token(value);
    const std::uint32_t first_bad = value == kHuge ? 0 : 2;
    for (const std::uint32_t chunk : {1u, 32u}) {
      OpenOptions options = with_logits();
      options.chunk = chunk;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
      for (const float temperature : {0.0f, 1.0f}) {
        for (const std::uint32_t max_tokens : {0u, 4u}) {
          ASSERT_TRUE(host.session->rewind(0));
          host.error = {};
          Prompt prompt = greedy(ids, max_tokens);
          prompt.sampler.temperature = temperature;
          const Generation run = host.generate(prompt);
          expect_not_finite(run.error, 4);
          EXPECT_TRUE(run.tokens.empty());
          EXPECT_EQ(host.session->end(), End::error);
          // What ended stays known, and is refused again.
          host.error = {};
          EXPECT_EQ(host.session->tokens().size(), ids.size());
          expect_not_finite(host.generate(greedy(std::vector<std::uint32_t>{12}, max_tokens)).error, 5);
        }
      }
      for (const std::uint32_t from : {0u, 1u, 3u}) {
        ASSERT_TRUE(host.session->rewind(0));
        host.error = {};
        Prompt prompt = greedy(ids, 2);
        prompt.all_logits = true;
        prompt.logits_from = from;
        const Generation run = host.generate(prompt);
        expect_not_finite(run.error, std::max(from, first_bad));
        EXPECT_TRUE(all_finite(run.logits));
        EXPECT_EQ(run.logits.size(), chunk == 1 ? (std::max(from, first_bad) - from) * std::size_t{40} : 0);
      }
      // Without the token the same session goes on.
      if (value == kHuge) continue;
      ASSERT_TRUE(host.session->rewind(2));
      host.error = {};
      EXPECT_EQ(host.generate(greedy(std::vector<std::uint32_t>{4}, 3)).tokens.size(), 3u);
    }
  }
}

TEST(Finite, ATokenThatWasChosenNamesItsPosition) {
  // Of a model that is sound up to a token that it chooses itself.
  const std::vector<std::uint32_t> ids{3, 5};
  const SmallFile sound = small_file(untied());
  Host host(sound.bytes, 8 * kMiB, {});
  const Generation whole = host.generate(greedy(ids, 12));
  ASSERT_EQ(whole.tokens.size(), 12u);
  const auto chosen =
      std::ranges::find_if(whole.tokens, [&](std::uint32_t id) { return std::ranges::find(ids, id) == ids.end(); });
  ASSERT_NE(chosen, whole.tokens.end());
  const std::uint32_t bad = *chosen;
  const auto first = std::ranges::find(whole.tokens, bad) - whole.tokens.begin();
  const SmallFile file = small_file(untied(), [&](SmallFile& weights) { set_token(weights, bad, kNaN); });
  Host other(file.bytes, 8 * kMiB, {});
  const Generation run = other.generate(greedy(ids, 12));
  expect_not_finite(run.error, static_cast<std::uint32_t>(2 + first));
  EXPECT_EQ(run.tokens, std::vector<std::uint32_t>(whole.tokens.begin(), whole.tokens.begin() + first + 1));
}

TEST(Finite, AnEmbeddingEndsWithTheFirstPosition) {
  const std::vector<std::uint32_t> ids{3, 5, kBad, 9};
  const SmallFile file = with_a_bad_token(kNaN);
  for (const std::uint32_t chunk : {1u, 3u, 32u}) {
    OpenOptions options;
    options.chunk = chunk;
    Host host(file.bytes, 8 * kMiB, options);
    ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
    const auto embed = [&](Pooling pooling) {
      host.error = {};
      EmbedPrompt prompt;
      prompt.tokens = ids;
      prompt.pooling = pooling;
      return host.embed(prompt);
    };
    EXPECT_EQ(embed(Pooling::first).error.code, ErrorCode::none);  // it sees nothing of what follows
    expect_not_finite(embed(Pooling::mean).error, 2);
    expect_not_finite(embed(Pooling::last).error, 3);
    const Generation states = embed(Pooling::none);
    expect_not_finite(states.error, 2);
    EXPECT_TRUE(all_finite(states.embedding));
  }
}

/// One sequence ends all, as a read that fails does; the others can be taken up again.
TEST(Finite, OtherSequencesGoOnAfterwards) {
  const SmallFile file = with_a_bad_token(kNaN);
  OpenOptions options;
  options.sequences = 2;
  Host host(file.bytes, 8 * kMiB, options);
  const std::vector<std::uint32_t> good{3, 5, 9}, bad{3, kBad};
  ASSERT_TRUE(host.session->start(greedy(good, 6), 0));
  ASSERT_TRUE(host.session->start(greedy(bad, 6), 1));
  expect_not_finite(host.pump().error, 1);
  EXPECT_EQ(host.session->end(0), End::error);
  Host alone(file.bytes, 8 * kMiB, {});
  const Generation whole = alone.generate(greedy(good, 6));
  ASSERT_TRUE(host.session->rewind(0, 0));
  host.error = {};
  const Generation again = host.generate(greedy(good, 6));
  EXPECT_EQ(again.tokens, whole.tokens);
  EXPECT_EQ(again.hash, whole.hash);
}

}  // namespace
}  // namespace qsf::test
