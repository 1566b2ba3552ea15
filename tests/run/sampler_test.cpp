#include "run/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/kernels.h"
#include "support/seeded.h"
#include "tests/support/error_of.h"

namespace qsf {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::uint32_t argmax(const float* x, std::uint32_t n) {
  return static_cast<std::uint32_t>(std::max_element(x, x + n) - x);
}

const Kernels& kernels() {
  static const Kernels table = [] {
    Kernels k{};
    k.argmax = argmax;
    return k;
  }();
  return table;
}

class Draws {
 public:
  Draws(const SamplerOptions& options, std::size_t vocab_size) : scratch_(vocab_size) {
    sampler_.begin(options, kernels(), scratch_, nullptr);
  }
  /// Returns the number of tokens if there is none to draw.
  std::uint32_t draw(std::vector<float> logits, const std::vector<std::uint32_t>& context = {}) {
    return sampler_.sample(logits, context).value_or(static_cast<std::uint32_t>(logits.size()));
  }

 private:
  std::vector<Candidate> scratch_;
  Sampler sampler_;
};

std::vector<float> random_logits(std::size_t n, std::uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

/// The probabilities by definition: sort everything, cut, normalize; ids with their probability.
std::map<std::uint32_t, double> reference(const std::vector<float>& logits, const SamplerOptions& options) {
  std::vector<std::uint32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  if (options.top_k != 0 && options.top_k < order.size()) order.resize(options.top_k);
  std::vector<double> weights;
  for (const std::uint32_t id : order) {
    weights.push_back(
        std::exp((static_cast<double>(logits[id]) - static_cast<double>(logits[order[0]])) / options.temperature));
  }
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double reached = 0;
  for (std::size_t i = 0; i < order.size() && options.top_p < 1; ++i) {
    reached += weights[i];
    if (reached >= options.top_p * sum) {
      order.resize(i + 1);
      sum = reached;
    }
  }
  std::map<std::uint32_t, double> probabilities;
  for (std::size_t i = 0; i < order.size(); ++i) probabilities[order[i]] = weights[i] / sum;
  return probabilities;
}

TEST(Random, PublishedSequences) {
  // SplitMix64 from 1234567 (Rosetta Code), xoshiro256++ from the state 1, 2, 3, 4 (rand_xoshiro, from the C
  // reference).
  std::uint64_t state = 1234567;
  for (const std::uint64_t wanted : {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
                                     4593380528125082431u, 16408922859458223821u}) {
    EXPECT_EQ(Random::split_mix(state), wanted);
  }
  Random random(Random::State{1, 2, 3, 4});
  for (const std::uint64_t wanted : {41943041u, 58720359u}) EXPECT_EQ(random.next(), wanted);
  for (const std::uint64_t wanted :
       {3588806011781223u, 3591011842654386u, 9228616714210784205u, 9973669472204895162u, 14011001112246962877u,
        12406186145184390807u, 15849039046786891736u, 10450023813501588000u}) {
    EXPECT_EQ(random.next(), wanted);
  }
}

TEST(Random, UniformIsBelowOne) {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);  // 5 standard deviations of the mean
}

TEST(Sampler, OptionsAreChecked) {
  EXPECT_TRUE(check({}));
  EXPECT_TRUE(check({.temperature = 0, .top_k = 0, .top_p = 1, .repetition_penalty = 0.5f}));
  const SamplerKind twice[] = {SamplerKind::min_p, SamplerKind::xtc, SamplerKind::min_p};
  const SamplerKind unknown[] = {static_cast<SamplerKind>(200)};
  const TokenBias infinite[] = {{1, -kInfinity}, {7, kInfinity}}, not_numbers[] = {{8, kNaN}};
  const std::string_view empty[] = {"a", ""};
  const std::vector<std::string_view> many(17, "a");
  const std::vector<std::pair<SamplerOptions, std::string>> bad{
      {{.temperature = -1}, "temperature is -1"},
      {{.temperature = kNaN}, "temperature is nan"},
      {{.temperature = kInfinity}, "temperature is inf"},
      {{.top_p = 0}, "top_p is 0"},
      {{.top_p = 1.5f}, "top_p is 1.5"},
      {{.top_p = kNaN}, "top_p is nan"},
      {{.repetition_penalty = 0}, "penalty is 0"},
      {{.repetition_penalty = kInfinity}, "penalty is inf"},
      {{.min_p = 1.5f}, "min_p is 1.5; it must be 0 to 1"},
      {{.typical_p = 0}, "typical_p is 0; it must be above 0 and at most 1"},
      {{.top_n_sigma = -2}, "top_n_sigma is -2"},
      {{.xtc_probability = kNaN}, "xtc_probability is nan"},
      {{.presence_penalty = kInfinity}, "presence_penalty is inf"},
      {{.repeat_last_n = -2}, "repeat_last_n is -2; it must be a whole number from -1 to 2147483647"},
      {{.dry_base = 0.5f}, "dry_base is 0.5"},
      {{.dry_allowed_length = 0}, "dry_allowed_length is 0; it must be a whole number from 1 to 1000"},
      {{.mirostat = 3}, "mirostat is 3"},
      {{.samplers = twice}, "the sampler min_p is named twice"},
      {{.samplers = unknown}, "there is no sampler with number 200"},
      {{.logit_bias = infinite}, "the bias of token 7 is inf; it must be a number or -infinity"},
      {{.logit_bias = not_numbers}, "the bias of token 8 is nan"},
      {{.dry_sequence_breakers = empty}, "a text that ends repetitions is empty"},
      {{.dry_sequence_breakers = many}, "17 texts that end repetitions were given, 16 are possible"},
  };
  for (const auto& [options, part] : bad) {
    const Status status = check(options);
    ASSERT_FALSE(status) << part;
    EXPECT_EQ(error_of(status).code, ErrorCode::bad_argument);
    EXPECT_NE(std::string(error_of(status).sentence).find(part), std::string::npos) << status.error().sentence;
  }
}

TEST(Sampler, OptionsAreSetByName) {
  SamplerOptions options;
  EXPECT_TRUE(set_option(options, "min_p", 0.25));
  EXPECT_TRUE(set_option(options, "repeat_last_n", -1));
  EXPECT_TRUE(set_option(options, "seed", 0x1p53));
  EXPECT_EQ(options.min_p, 0.25f);
  EXPECT_EQ(options.seed, 1ull << 53);
  const std::tuple<const char*, double, const char*> bad[] = {
      {"min_p", 2, "min_p is 2; it must be 0 to 1"},
      {"top_p", 0, "top_p is 0; it must be above 0 and at most 1"},
      {"top_k", 1.5, "top_k is 1.5; it must be a whole number from 0 to 4294967295"},
      {"top_k", -1, "top_k is -1; it must be a whole number from 0 to"},
      {"seed", 1e300, "seed is 1e+300; it must be a whole number from 0 to"},
      {"mirostat", static_cast<double>(kNaN), "mirostat is nan; it must be a whole number from 0 to 2"},
      {"minP", 0, "there is no option of sampling 'minP'"},
  };
  for (const auto& [name, value, sentence] : bad) {
    const Status status = set_option(options, name, value);
    ASSERT_FALSE(status) << name;
    EXPECT_TRUE(std::string_view(error_of(status).sentence).starts_with(sentence)) << status.error().sentence;
  }
  EXPECT_EQ(options.top_k, SamplerOptions().top_k);
}

TEST(Sampler, SamplersHaveNames) {
  for (const SamplerKind kind : kAllSamplers) {
    EXPECT_EQ(find_sampler(kSamplerNames[static_cast<std::size_t>(kind)]), kind);
  }
  EXPECT_EQ(find_sampler("top-k"), std::nullopt);
  EXPECT_EQ(find_sampler(""), std::nullopt);
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  Draws greedy({.temperature = 0}, 5);
  EXPECT_EQ(greedy.draw({1, 3, 2, 3, 0}), 1u);
  EXPECT_EQ(greedy.draw({-kInfinity, -kInfinity, -kInfinity, -5, -kInfinity}), 3u);
}

TEST(Sampler, MinusInfinityIsNeverDrawn) {
  Draws draws({.temperature = 10, .top_k = 0, .top_p = 1, .seed = 3}, 4);
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t id = draws.draw({-kInfinity, 1, -kInfinity, 0});
    EXPECT_TRUE(id == 1 || id == 3) << id;
  }
}

TEST(Sampler, AnOverflowingPenaltyIsCertain) {
  Draws draws({.temperature = 1, .top_k = 0, .top_p = 1, .repetition_penalty = 0.25f, .seed = 3}, 3);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(draws.draw({1, 5, 3e38f}, {2}), 2u);
  Draws never({.temperature = 1, .top_k = 0, .top_p = 1, .repetition_penalty = 4, .seed = 3}, 2);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(never.draw({-3e38f, -3e38f}, {0}), 1u);
}

/// Logits that a caller gives: a mask is one, a NaN and an infinity are none.
TEST(Sampler, LogitsOfACallerAreChecked) {
  std::vector<Candidate> scratch(3);
  for (const SamplerOptions& options : {SamplerOptions{.temperature = 0}, SamplerOptions{.temperature = 1},
                                        SamplerOptions{.temperature = 1, .top_k = 2, .top_p = 0.5f}}) {
    const auto choose = [&](std::vector<float> logits) { return sample_token(options, logits, scratch); };
    for (const std::vector<float>& bad : {std::vector<float>{0, kNaN, 1}, {kInfinity, 0, 1}, {kNaN, kNaN, kNaN}}) {
      const Result<std::uint32_t> token = choose(bad);
      ASSERT_FALSE(token);
      EXPECT_EQ(error_of(token).code, ErrorCode::not_finite) << token.error().sentence;
    }
    EXPECT_STREQ(error_of(choose({0, kNaN, 1})).sentence, "the logit of token 1 is nan, no finite number");
    EXPECT_EQ(error_of(choose({-kInfinity, -kInfinity, -kInfinity})).code, ErrorCode::not_finite);
    EXPECT_EQ(*choose({-kInfinity, -9, -kInfinity}), 1u);
  }
}

TEST(Sampler, PenaltyOncePerDistinctToken) {
  // CTRL, section 4.1: x / penalty for positive logits, x * penalty for the others.
  std::vector<Candidate> scratch(4);
  Sampler sampler;
  sampler.begin({.temperature = 0, .repetition_penalty = 2}, kernels(), scratch, nullptr);
  std::vector<float> logits{8, -3, 5, 4.5f};
  const std::vector<std::uint32_t> context{0, 1, 0, 1, 0, 99};
  EXPECT_EQ(sampler.sample(logits, context), 2u);
  EXPECT_EQ(logits, (std::vector<float>{4, -6, 5, 4.5f}));
}

TEST(Sampler, SameSeedSameTokens) {
  const std::vector<float> logits = random_logits(300, 5, 2);
  const SamplerOptions options{.temperature = 1, .top_k = 0, .top_p = 0.95f, .seed = 42};
  Draws a(options, 300), b(options, 300);
  SamplerOptions other = options;
  other.seed = 43;
  Draws c(other, 300);
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t id = a.draw(logits);
    EXPECT_EQ(id, b.draw(logits));
    different += id != c.draw(logits) ? 1 : 0;
  }
  EXPECT_GT(different, 50);
}

// The constants were made while candidates were sorted by the standard library: how they are selected changes no token.
TEST(Sampler, SeedsGiveTheCommittedTokens) {
  struct Case {
    SamplerOptions options;
    std::uint64_t hash;
  };
  for (const auto& [options, wanted] :
       {Case{{.temperature = 1, .top_k = 0, .top_p = 1, .seed = 1}, 0xbf085c23366b5e23u},
        Case{{.temperature = 1, .top_k = 0, .top_p = 0.9f, .seed = 2}, 0xab325580ca33017eu},
        Case{{.temperature = 5, .top_k = 0, .top_p = 0.99f, .seed = 3}, 0x48f68a617c1e68c5u},
        Case{{.temperature = 0.7f, .top_k = 40, .top_p = 1, .seed = 4}, 0xa0f379824e49118au},
        Case{{.temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .seed = 5}, 0xfc74b63cc9701675u},
        Case{{.temperature = 2, .top_k = 900, .top_p = 0.95f, .seed = 6}, 0x52eabb5ac7f04a71u}}) {
    test::Random random(options.seed);
    test::Hash hash;
    Draws draws(options, 3000);
    std::vector<std::uint32_t> ids;
    for (int round = 0; round < 100; ++round) {
      std::vector<float> logits(3000);
      for (float& logit : logits) logit = random.symmetric() * static_cast<float>(1u << random.below(5));
      if (round % 3 == 0) {
        for (float& logit : logits) logit = std::nearbyint(logit * 2) / 2;  // ties
      }
      for (int i = 0; i < 10; ++i) ids.push_back(draws.draw(logits));
    }
    hash.add(std::span<const std::uint32_t>(ids));
    EXPECT_EQ(hash.value(), wanted) << "0x" << std::hex << hash.value();
  }
}

// The constants were made by GCC for x86-64. Every build and machine must draw the same tokens.
TEST(Sampler, SeedsGiveTheCommittedTokensOfEverySampler) {
  using enum SamplerKind;
  struct Case {
    SamplerOptions options;
    std::uint64_t hash;
  };
  static constexpr SamplerKind kLlamaCpp[] = {penalties, dry,   top_n_sigma, top_k,      typical_p,
                                              top_p,     min_p, xtc,         temperature};
  static constexpr SamplerKind kLate[] = {min_p, temperature, penalties, typical_p, dry};
  static constexpr TokenBias kBiases[] = {{3, 2.5f}, {5, -kInfinity}, {7, -1}};
  for (const auto& [options, wanted] :
       {Case{{.temperature = 1, .top_k = 0, .top_p = 1, .seed = 1, .min_p = 0.05f}, 0x661c8ff601ee1077u},
        Case{{.temperature = 1, .top_k = 0, .top_p = 1, .seed = 2, .typical_p = 0.8f}, 0xa617da028db0f550u},
        Case{{.temperature = 2, .top_k = 0, .top_p = 1, .seed = 3, .top_n_sigma = 1.5f}, 0x7f7a865f10a6157fu},
        Case{{.temperature = 3, .seed = 4, .xtc_probability = 0.5f, .xtc_threshold = 0.04f}, 0xea01f066b61eea54u},
        Case{{.repetition_penalty = 1.1f,
              .seed = 5,
              .presence_penalty = 0.5f,
              .frequency_penalty = 0.25f,
              .repeat_last_n = 64},
             0xa35bb925c3c3362cu},
        Case{{.temperature = 2, .seed = 6, .dry_multiplier = 0.8f, .dry_allowed_length = 1}, 0xda967b26d5a2268eu},
        Case{{.top_k = 0, .top_p = 1, .seed = 7, .dynatemp_range = 0.5f, .dynatemp_exponent = 1.5f},
             0xe6f53533c93d2067u},
        Case{{.temperature = 1, .seed = 8, .mirostat = 1, .mirostat_tau = 4}, 0x501026336430b6b9u},
        Case{{.temperature = 1, .seed = 9, .mirostat = 2, .mirostat_tau = 4}, 0x8ad4abcc67857032u},
        Case{{.temperature = 1.5f,
              .seed = 10,
              .min_p = 0.02f,
              .typical_p = 0.9f,
              .top_n_sigma = 2,
              .xtc_probability = 0.2f,
              .samplers = kLlamaCpp,
              .logit_bias = kBiases},
             0x22abdc4980eae233u},
        Case{{.temperature = 1.5f,
              .repetition_penalty = 1.2f,
              .seed = 11,
              .min_p = 0.02f,
              .typical_p = 0.9f,
              .dry_multiplier = 1,
              .samplers = kLate},
             0x6cc54bc63a1c00f5u}}) {
    test::Random random(options.seed);
    test::Hash hash;
    Draws draws(options, 2000);
    std::vector<std::uint32_t> ids;
    for (int round = 0; round < 60; ++round) {
      std::vector<float> logits(2000);
      for (float& logit : logits) {
        logit = random.symmetric() * static_cast<float>(1u << random.below(5));
        if (round % 3 == 0) logit = std::nearbyint(logit * 2) / 2;  // ties
        if (round % 4 == 0 && random.below(2) == 0) logit = -kInfinity;
      }
      for (int i = 0; i < 5; ++i) ids.push_back(draws.draw(logits, ids));
    }
    hash.add(std::span<const std::uint32_t>(ids));
    EXPECT_EQ(hash.value(), wanted) << "seed " << options.seed << ": 0x" << std::hex << hash.value();
  }
}

/// A top_k that keeps all tokens changes no bit, as with masked ones.
TEST(Sampler, TopKOfAllTokensIsNone) {
  test::Random random(1);
  Draws all({.temperature = 1, .top_k = 0, .top_p = 1, .seed = 1}, 500);
  Draws none({.temperature = 1, .top_k = 400, .top_p = 1, .seed = 1}, 500);
  for (int i = 0; i < 3000; ++i) {
    std::vector<float> logits(500, -kInfinity);
    for (std::size_t id = 0; id < 400; ++id) logits[id] = random.symmetric();
    ASSERT_EQ(all.draw(logits), none.draw(logits)) << i;
  }
}

/// Pearson's statistic over ids with an expected count of at least 5, the rest pooled.
TEST(Sampler, FrequenciesFitTheReference) {
  constexpr int kDraws = 40000;
  const std::vector<float> logits = random_logits(60, 11, 2);
  for (const SamplerOptions& options : {SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 1, .seed = 1},
                                        SamplerOptions{.temperature = 0.6f, .top_k = 0, .top_p = 1, .seed = 2},
                                        SamplerOptions{.temperature = 1.5f, .top_k = 12, .top_p = 1, .seed = 3},
                                        SamplerOptions{.temperature = 1, .top_k = 0, .top_p = 0.8f, .seed = 4},
                                        SamplerOptions{.temperature = 0.9f, .top_k = 20, .top_p = 0.7f, .seed = 5}}) {
    const std::map<std::uint32_t, double> wanted = reference(logits, options);
    std::map<std::uint32_t, int> counts;
    Draws draws(options, logits.size());
    for (int i = 0; i < kDraws; ++i) ++counts[draws.draw(logits)];
    double statistic = 0, pooled = 0;
    int pooled_count = 0, cells = 0;
    for (const auto& [id, probability] : wanted) {
      const double expected = probability * kDraws;
      if (expected < 5) {
        pooled += expected;
        pooled_count += counts[id];
        continue;
      }
      statistic += (counts[id] - expected) * (counts[id] - expected) / expected;
      ++cells;
    }
    if (pooled >= 5) {
      statistic += (pooled_count - pooled) * (pooled_count - pooled) / pooled;
      ++cells;
    }
    for (const auto& [id, count] : counts) {
      if (count > 0) {
        EXPECT_TRUE(wanted.contains(id)) << id;
      }
    }
    // Wilson and Hilferty's bound of the chi-square distribution at one in a million.
    const double degrees = cells - 1, a = 2.0 / (9 * degrees);
    const double bound = degrees * std::pow(1 - a + 4.753 * std::sqrt(a), 3);
    EXPECT_LT(statistic, bound) << "seed " << options.seed << ", " << cells << " cells";
  }
}

TEST(Sampler, DrawsExactlyTheSupport) {
  // Flat logits with many equals, so that every kept token shows up and ties decide who is kept.
  std::mt19937 random(9);
  for (std::uint32_t round = 0; round < 40; ++round) {
    std::vector<float> logits(2 + random() % 40);
    for (float& logit : logits) logit = static_cast<float>(random() % 4) * 0.25f;
    const SamplerOptions options{.temperature = 1,
                                 .top_k = static_cast<std::uint32_t>(random() % (logits.size() + 3)),
                                 .top_p = round % 3 == 0 ? 1.0f : static_cast<float>(random() % 100 + 1) / 100,
                                 .seed = round};
    std::set<std::uint32_t> wanted, drawn;
    for (const auto& [id, probability] : reference(logits, options)) wanted.insert(id);
    Draws draws(options, logits.size());
    for (int i = 0; i < 2000; ++i) drawn.insert(draws.draw(logits));
    EXPECT_EQ(drawn, wanted) << "round " << round << " top_k " << options.top_k << " top_p " << options.top_p;
  }
}

TEST(Sampler, TinyTemperatureIsGreedyAndHugeIsFlat) {
  Draws cold({.temperature = 1e-30f, .top_k = 0, .top_p = 1, .seed = 1}, 3);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cold.draw({1, 1.0001f, 0.5f}), 1u);
  Draws hot({.temperature = 1e30f, .top_k = 0, .top_p = 1, .seed = 1}, 3);
  std::set<std::uint32_t> drawn;
  for (int i = 0; i < 100; ++i) drawn.insert(hot.draw({100, -100, 0}));
  EXPECT_EQ(drawn.size(), 3u);
}

}  // namespace
}  // namespace qsf
