// Each sampler compared with its definition, alone and in any order, and its limits.
#include "run/samplers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "qsf/text/tokenizer_builder.h"
#include "run/mirostat.h"
#include "run/sampler.h"
#include "run/sampler_reference.h"
#include "support/seeded.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using Probabilities = std::map<std::uint32_t, double>;
using enum SamplerKind;

constexpr float kMasked = -std::numeric_limits<float>::infinity();

/// Candidates with their memory.
struct Left {
  explicit Left(std::vector<float> given)
      : logits(std::move(given)), scratch(logits.size()), candidates(logits, scratch, best_kernels()) {}

  void apply(const SamplerOptions& options, std::span<const std::uint32_t> context = {},
             const Tokenizer* tokenizer = nullptr) {
    qsf::Random random(options.seed);
    apply_samplers(candidates, {options, context, tokenizer, random});
  }
  Probabilities probabilities() {
    Probabilities by_id;
    const double total = candidates.total();
    candidates.each([&](const Candidate& c) { by_id[c.id] = candidates.odds()(c.logit) / total; });
    return by_id;
  }

  std::vector<float> logits;
  std::vector<Candidate> scratch;
  Candidates candidates;
};

/// Different numbers, numbers with many equals, and both with masked tokens.
std::vector<float> some_logits(Random& random, std::size_t n) {
  const std::uint32_t kind = random.below(4);
  std::vector<float> logits(n);
  for (float& logit : logits) {
    logit = 8 * random.symmetric();
    if (kind == 1) logit = static_cast<float>(random.below(9)) / 2 - 2;
    if (kind >= 2 && random.below(3) == 0) logit = kMasked;
  }
  logits[random.below(static_cast<std::uint32_t>(n))] = 6.25f;
  return logits;
}

/// A context in which parts are repeated.
Ids some_context(Random& random, std::uint32_t vocab_size) {
  Ids context;
  while (context.size() < 60) {
    const std::uint32_t n = 1 + random.below(8), back = 1 + random.below(20);
    for (std::uint32_t i = 0; i < n; ++i) {
      const bool repeats = context.size() >= back && random.below(10) != 0;
      context.push_back(repeats ? context[context.size() - back] : random.below(vocab_size));
    }
  }
  return context;
}

/// Options of every sampler, none of which is off.
SamplerOptions some_options(Random& random) {
  const auto fraction = [&] { return static_cast<float>(random.below(999) + 1) / 1000; };
  SamplerOptions o;
  o.temperature = 0.1f + 2 * fraction();
  o.top_k = 1 + random.below(40);
  o.top_p = fraction();
  o.min_p = fraction() * fraction();
  o.typical_p = fraction();
  o.top_n_sigma = 3 * fraction();
  o.xtc_probability = 1;
  o.xtc_threshold = fraction() / 20;
  o.repetition_penalty = 0.5f + fraction();
  o.presence_penalty = 2 * fraction() - 1;
  o.frequency_penalty = 2 * fraction() - 1;
  o.repeat_last_n = static_cast<std::int32_t>(random.below(70)) - 1;
  o.dry_multiplier = fraction();
  o.dry_base = 1 + fraction();
  o.dry_allowed_length = 1 + random.below(4);
  o.dry_penalty_last_n = static_cast<std::int32_t>(random.below(70)) - 1;
  if (random.below(2) == 0) o.dynatemp_range = fraction();
  o.dynatemp_exponent = 2 * fraction();
  return o;
}

void expect_near(const Probabilities& given, const Probabilities& wanted, const std::string& what) {
  // Penalties make logits of up to 128, which are rounded to 24 bits, and temperatures of 0.1 magnify that by 10.
  constexpr double kTolerance = 128 * 0x1p-24 * 10 * 4;
  std::vector<std::uint32_t> ids, wanted_ids;
  for (const auto& [id, p] : given) ids.push_back(id);
  for (const auto& [id, p] : wanted) wanted_ids.push_back(id);
  ASSERT_EQ(ids, wanted_ids) << what;
  for (const auto& [id, p] : wanted) EXPECT_NEAR(given.at(id), p, kTolerance * p) << what << ", token " << id;
}

TEST(Samplers, EachIsItsDefinition) {
  for (const SamplerKind kind : kAllSamplers) {
    const std::string name(kSamplerNames[static_cast<std::size_t>(kind)]);
    std::size_t changed = 0;
    for (std::uint32_t round = 0; round < 300; ++round) {
      Random random(round);
      const std::vector<float> logits = some_logits(random, 1 + random.below(700));
      const Ids context = some_context(random, static_cast<std::uint32_t>(logits.size()));
      SamplerOptions options = some_options(random);
      options.samplers = {&kind, 1};
      Left left(logits);
      const Probabilities before = left.probabilities();
      left.apply(options, context);
      Reference reference(logits, context);
      reference.apply(kind, options);
      expect_near(left.probabilities(), reference.probabilities(), name + ", round " + std::to_string(round));
      changed += left.probabilities() != before ? 1 : 0;
    }
    EXPECT_GT(changed, 100u) << name;
  }
}

TEST(Samplers, FollowAnyOrder) {
  for (std::uint32_t round = 0; round < 1000; ++round) {
    Random random(1000 + round);
    const std::vector<float> logits = some_logits(random, 1 + random.below(700));
    const Ids context = some_context(random, static_cast<std::uint32_t>(logits.size()));
    std::vector<SamplerKind> order(kAllSamplers.begin(), kAllSamplers.end());
    for (std::size_t i = 1; i < order.size(); ++i) {
      std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1))]);
    }
    order.resize(random.below(static_cast<std::uint32_t>(order.size() + 1)));
    SamplerOptions options = some_options(random);
    options.samplers = order;
    Left left(logits);
    left.apply(options, context);
    Reference reference(logits, context);
    std::string names;
    for (const SamplerKind kind : order) {
      reference.apply(kind, options);
      names.append(" ").append(kSamplerNames[static_cast<std::size_t>(kind)]);
    }
    expect_near(left.probabilities(), reference.probabilities(), "round " + std::to_string(round) + names);
  }
}

TEST(Samplers, DoNothingUnlessAsked) {
  Random random(5);
  const std::vector<float> logits = some_logits(random, 300);
  const Ids context = some_context(random, 300);
  SamplerOptions off;
  off.temperature = 1;
  off.top_k = 0;
  off.top_p = 1;
  Left all(logits), none(logits);
  all.apply(off, context);
  EXPECT_EQ(all.probabilities(), none.probabilities());
  EXPECT_EQ(all.logits, logits);
}

/// Options under which a sampler removes as much as it can.
SamplerOptions strictest() {
  SamplerOptions o;
  o.temperature = 1;
  o.top_k = 1;
  o.top_p = o.typical_p = boundary::kAboveZero;
  o.min_p = 1;
  o.top_n_sigma = std::numeric_limits<float>::denorm_min();
  o.xtc_probability = 1;
  o.xtc_threshold = 0;
  o.repetition_penalty = o.presence_penalty = o.frequency_penalty = o.dry_multiplier = o.dry_base = 3.4e38f;
  o.dry_allowed_length = 1;
  return o;
}

Ids left_of(std::vector<float> logits, SamplerKind kind, const SamplerOptions& given = strictest(),
            const Ids& context = {}) {
  SamplerOptions options = given;
  options.samplers = {&kind, 1};
  Left left(std::move(logits));
  left.apply(options, context);
  Ids ids;
  for (const auto& [id, p] : left.probabilities()) ids.push_back(id);
  return ids;
}

TEST(Samplers, LeaveOneTokenAndNoneThatIsMasked) {
  const Ids context{0, 1, 2, 3, 0, 1, 2, 3, 1, 1, 1};
  for (const SamplerKind kind : kAllSamplers) {
    EXPECT_EQ(left_of({3}, kind, strictest(), {0, 0, 0}), Ids{0});
    EXPECT_EQ(left_of({kMasked, -3.4e38f, kMasked, kMasked}, kind, strictest(), context), Ids{1});
    for (const std::uint32_t id : left_of({kMasked, -1, kMasked, 5}, kind, strictest(), context)) {
      EXPECT_TRUE(id == 1 || id == 3);
    }
    EXPECT_FALSE(left_of({3.4e38f, -3.4e38f, 0, 3.4e38f}, kind, strictest(), context).empty());
  }
}

TEST(Samplers, TakeTheLowerIdOfEquals) {
  const std::vector<float> equals(6, 2.5f);
  SamplerOptions o = strictest();
  EXPECT_EQ(left_of(equals, top_k, o), Ids{0});
  EXPECT_EQ(left_of(equals, top_p, o), Ids{0});
  EXPECT_EQ(left_of(equals, typical_p, o), Ids{0});
  EXPECT_EQ(left_of(equals, min_p, o), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(left_of(equals, top_n_sigma, o), (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(left_of(equals, xtc, o), Ids{5});  // the least likely is the last
  o.temperature = 0;
  EXPECT_EQ(left_of(equals, temperature, o), Ids{0});
  o.top_k = 3;
  o.top_p = o.typical_p = 0.5f;
  for (const SamplerKind kind : {top_k, top_p, typical_p}) EXPECT_EQ(left_of(equals, kind, o), (Ids{0, 1, 2}));
}

TEST(Samplers, ThresholdsIncludeTheirTokens) {
  SamplerOptions o;
  o.min_p = 0.5f;
  EXPECT_EQ(left_of({0, -0.6931f, -0.6932f}, min_p, o), (Ids{0, 1}));  // ln 2 is 0.69314...
  o.top_n_sigma = 1;
  EXPECT_EQ(left_of({5, 1, 3, 3}, top_n_sigma, o), Ids{0});  // the deviation is the root of 2
  o.top_n_sigma = 1.5f;
  EXPECT_EQ(left_of({5, 1, 3, 3}, top_n_sigma, o), (Ids{0, 2, 3}));
  o.xtc_probability = 1;
  o.xtc_threshold = 0.25f;
  EXPECT_EQ(left_of({1, 1, 1, 1}, xtc, o), Ids{3});
  o.xtc_threshold = 0.2501f;
  EXPECT_EQ(left_of({1, 1, 1, 1}, xtc, o), (Ids{0, 1, 2, 3}));
  o.xtc_threshold = 0.3f;
  EXPECT_EQ(left_of({3, 0, 0, 0}, xtc, o), (Ids{0, 1, 2, 3}));  // a single one stays
}

TEST(Samplers, PenaltiesAreFinite) {
  SamplerOptions o = strictest();
  o.samplers = std::span(kAllSamplers).first(2);
  Left left({-1, 3.4e38f, 2, kMasked});
  const Ids context{0, 1, 2, 3, 0, 1, 2, 3, 99};
  left.apply(o, context);
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(left.logits, (std::vector<float>{kLowest, kLowest, kLowest, kMasked}));
  o.repetition_penalty = 1;
  o.presence_penalty = o.frequency_penalty = -3.4e38f;
  o.dry_multiplier = 0;
  Left raised({-1, 3.4e38f, 2, kMasked});
  raised.apply(o, context);
  constexpr float kHighest = std::numeric_limits<float>::max();
  EXPECT_EQ(raised.logits, (std::vector<float>{kHighest, kHighest, kHighest, kMasked}));
}

TEST(Samplers, XtcRemovesAsOftenAsItsProbability) {
  Random seeds(3);
  for (const float probability : {0.0f, 0.3f, 0.5f, 1.0f}) {
    int removed = 0;
    for (int i = 0; i < 2000; ++i) {
      SamplerOptions o;
      o.xtc_probability = probability;
      o.seed = seeds.next();
      removed += left_of({2, 2, 1}, xtc, o).size() < 3 ? 1 : 0;
    }
    const double p = double{probability}, deviation = std::sqrt(2000 * p * (1 - p));
    EXPECT_NEAR(removed, 2000 * p, 5 * deviation) << probability;
  }
}

/// Tokens with texts, of which some are parts of others, and a control token.
const std::vector<std::string>& vocabulary() {
  static const std::vector<std::string> texts{"\xEF\xBF\xBD", "",   "a", "b",   ":", "a:b", "e",
                                              "nd",           "en", "d", "b\n", "c"};
  return texts;
}

struct Texts {
  Texts() {
    TokenizerSource source;
    source.kind = TokenizerKind::spm_bpe;
    for (const std::string& text : vocabulary()) source.tokens.push_back({text});
    source.tokens[0] = {"<unk>", 0, TokenType::unknown};
    source.tokens[1] = {"<s>", 0, TokenType::control};
    const Result<std::vector<std::byte>> built = build_tokenizer(source);
    EXPECT_TRUE(built) << built.error().sentence;
    section = *built;
    const Result<Tokenizer> opened = Tokenizer::open(section, static_cast<std::uint32_t>(vocabulary().size()));
    EXPECT_TRUE(opened) << opened.error().sentence;
    tokenizer = *opened;
    for (std::uint32_t id = 0; id < vocabulary().size(); ++id) EXPECT_EQ(tokenizer.bytes(id), vocabulary()[id]);
  }
  std::vector<std::byte> section;
  Tokenizer tokenizer;
};

TEST(Samplers, DryEndsRepetitionsAtTexts) {
  const Texts texts;
  const SamplerKind kind = dry;
  std::size_t differ = 0;
  for (const std::vector<std::string_view>& breakers : {std::vector<std::string_view>{},
                                                        {":"},
                                                        {"\n", ":"},
                                                        {"end"},
                                                        {"nde"},
                                                        {"ab", "c"},
                                                        {"aaaa", "bend", "endend"}}) {
    for (std::uint32_t round = 0; round < 200; ++round) {
      Random random(round);
      SamplerOptions options = some_options(random);
      options.dry_sequence_breakers = breakers;
      options.samplers = {&kind, 1};
      const Ids context = some_context(random, static_cast<std::uint32_t>(vocabulary().size()));
      const std::vector<float> logits(vocabulary().size(), 1.0f);
      Left left(logits), without(logits);
      left.apply(options, context, &texts.tokenizer);
      without.apply(options, context);
      differ += left.logits != without.logits ? 1 : 0;
      Reference reference(logits, context, vocabulary());
      reference.apply(kind, options);
      expect_near(left.probabilities(), reference.probabilities(), "round " + std::to_string(round));
    }
  }
  EXPECT_GT(differ, 100u);
}

TEST(Samplers, DryCountsAsManyTokensAsItSays) {
  const SamplerKind kind = dry;
  SamplerOptions o;
  o.samplers = {&kind, 1};
  o.dry_multiplier = 1;
  o.dry_base = 1 + 0x1p-10f;
  for (const std::size_t n : {1, 2, 3, 100, 258, 259, 4000}) {
    const Ids context(n, 0);
    Left left({0, 0});
    left.apply(o, context);
    // All tokens but the first repeat the ones before; 2 may, and 256 more raise the penalty.
    const double length = static_cast<double>(std::min<std::size_t>(n - 1, 258));
    EXPECT_NEAR(left.logits[0], length < 2 ? 0 : -std::pow(1 + 0x1p-10, length - 2), 1e-6) << n;
    EXPECT_EQ(left.logits[1], 0);
  }
}

TEST(Samplers, BiasesComeFirst) {
  const std::vector<TokenBias> biases{{1, 2}, {1, 3}, {0, kMasked}, {2, -3.4e38f}, {2, -3.4e38f}, {3, 5}, {99, 1}};
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = biases;
  std::vector<float> logits{9, 1, 7, kMasked};
  std::vector<Candidate> scratch(4);
  Sampler sampler;
  sampler.begin(options, best_kernels(), scratch, nullptr);
  EXPECT_EQ(sampler.sample(logits, {}), 1u);
  std::vector<float> none{9, kMasked};
  sampler.begin(options, best_kernels(), scratch, nullptr);
  EXPECT_FALSE(sampler.sample(none, {}));
}

TEST(Samplers, MirostatIsItsDefinition) {
  for (const std::uint32_t version : {1u, 2u}) {
    for (std::uint32_t round = 0; round < 40; ++round) {
      Random random(round);
      SamplerOptions options;
      options.mirostat = version;
      options.mirostat_tau = static_cast<float>(1 + random.below(60)) / 10;
      options.mirostat_eta = static_cast<float>(1 + random.below(10)) / 20;
      Mirostat mirostat;
      mirostat.begin(options);
      double limit = 2 * double{options.mirostat_tau};
      for (int step = 0; step < 30; ++step) {
        std::vector<float> logits(400);
        for (float& logit : logits) logit = (random.below(9) == 0 && version == 2) ? kMasked : 6 * random.symmetric();
        Left left(logits);
        mirostat.truncate(left.candidates, logits.size());
        Reference reference(logits, {});
        if (version == 1) reference.mirostat_1(limit, 400);
        if (version == 2) reference.mirostat_2(limit);
        const Probabilities wanted = reference.probabilities();
        expect_near(left.probabilities(), wanted, "version " + std::to_string(version));
        const Candidate drawn = left.candidates.draw((random.symmetric() + 1) / 2.0);
        mirostat.follow(left.candidates, drawn);
        limit -= double{options.mirostat_eta} * (-std::log2(wanted.at(drawn.id)) - double{options.mirostat_tau});
      }
    }
  }
}

TEST(Samplers, MirostatTakesAnyLogits) {
  for (const std::uint32_t version : {1u, 2u}) {
    for (const std::vector<float>& logits :
         {std::vector<float>{1}, {2, 2, 2, 2}, {3.4e38f, -3.4e38f, 0}, {kMasked, 1, kMasked}, {5, 5, 1, kMasked}}) {
      for (const float tau : {0.0f, 5.0f, 3.4e38f}) {
        SamplerOptions options;
        options.temperature = 1e-3f;
        options.mirostat = version;
        options.mirostat_tau = tau;
        options.mirostat_eta = tau;
        std::vector<Candidate> scratch(logits.size());
        Sampler sampler;
        sampler.begin(options, best_kernels(), scratch, nullptr);
        for (int i = 0; i < 5; ++i) {
          std::vector<float> row = logits;
          const std::optional<std::uint32_t> token = sampler.sample(row, {});
          ASSERT_TRUE(token);
          EXPECT_NE(logits[*token], kMasked);
        }
      }
    }
  }
}

TEST(Samplers, MirostatReplacesWhatOnlyRemoves) {
  SamplerOptions options = strictest();
  options.mirostat = 2;
  options.repetition_penalty = 2;
  options.presence_penalty = options.frequency_penalty = options.dry_multiplier = 0;
  Left left({4, 3, 2});
  const Ids context{0};
  left.apply(options, context);
  EXPECT_EQ(left.probabilities().size(), 3u);
  EXPECT_EQ(left.logits, (std::vector<float>{2, 3, 2}));
}

/// The mean surprise comes near to the target, for every distribution (section 5 of the paper).
TEST(Samplers, MirostatKeepsTheSurprise) {
  std::vector<float> zipf(2000);
  for (std::size_t i = 0; i < zipf.size(); ++i) zipf[i] = -1.1f * std::log(static_cast<float>(i + 1));
  for (const float tau : {2.0f, 3.0f, 4.0f}) {
    SamplerOptions options;
    options.mirostat = 2;
    options.mirostat_tau = tau;
    Mirostat mirostat;
    mirostat.begin(options);
    qsf::Random random(1);
    double sum = 0;
    constexpr int kDraws = 2000;
    for (int i = 0; i < kDraws; ++i) {
      Left left(zipf);
      mirostat.truncate(left.candidates, zipf.size());
      const Candidate drawn = left.candidates.draw(random.uniform());
      sum -= std::log2(left.candidates.odds()(drawn.logit) / left.candidates.total());
      mirostat.follow(left.candidates, drawn);
    }
    // The limit moves by the learning rate times the sum of errors, and stays between 0 and the largest surprise, 16.
    EXPECT_NEAR(sum / kDraws, double{tau}, 16 / 0.1 / kDraws) << tau;
  }
}

}  // namespace
}  // namespace qsf::test
