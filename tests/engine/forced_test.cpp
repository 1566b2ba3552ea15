// Tokens without a choice: those that alone are allowed are computed as columns of one pass, and those that the host
// expects are guessed. Texts are those of one token at a time.
#include <array>

#include "engine/host.h"
#include "engine/variants.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kVocab = 40, kPeriod = 9, kRun = 6;

/// Returns the set for a token by its number: of every nine tokens six are alone, and the others have choices.
std::uint64_t set_of(std::uint32_t n) {
  const std::uint64_t beyond = ~std::uint64_t{0} << kVocab;  // bits of no token
  if (n % kPeriod < kPeriod - kRun) return 0x00FF'00FF'0Full << n % 3 | beyond;
  return std::uint64_t{1} << (n * 5 + 3) % kVocab | beyond;
}

struct Passes {
  Generation made;
  std::uint64_t n = 0;
};

/// Runs a prompt with these sets; a hash of the logits needs those of every token.
Passes run(Host& host, Prompt prompt, bool with_hash) {
  std::uint64_t allowed = set_of(0);
  prompt.allowed = std::span(&allowed, 1);
  prompt.hash_logits = with_hash;
  bool in_pass = false;
  Passes out;
  host.stop_when = [&] {
    allowed = set_of(host.session->sequence_stats().generated_tokens);
    const bool embeds = host.session->work() == Work::embed;
    out.n += embeds && !in_pass ? 1 : 0;
    in_pass = embeds;
    return false;
  };
  out.made = host.generate(prompt);
  host.stop_when = {};
  return out;
}

std::vector<SamplerOptions> samplers() {
  std::vector<SamplerOptions> all(7);
  all[0].temperature = 0;
  for (std::size_t i = 1; i < all.size(); ++i) all[i] = {.temperature = 1.5f, .top_k = 0, .top_p = 1, .seed = i};
  all[1].repetition_penalty = 1.3f;
  all[1].presence_penalty = 0.4f;
  all[2].xtc_probability = 0.7f;
  all[2].xtc_threshold = 0.01f;
  all[3].mirostat = 1;
  all[4].mirostat = 2;
  all[4].dynatemp_range = 0.5f;
  all[5].typical_p = 0.7f;
  all[5].top_n_sigma = 1.5f;
  all[5].min_p = 0.02f;
  all[6].dry_multiplier = 0.8f;
  all[6].top_k = 5;
  all[6].top_p = 0.8f;
  return all;
}

TEST(Forced, TokensTakeOnePassAndChangeNoText) {
  const auto ids = some_tokens(9, kVocab), more = some_tokens(4, kVocab, 17);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    for (const std::uint32_t chunk : {0u, 3u}) {
      OpenOptions options;
      options.chunk = chunk;
      Host host(file.bytes, 8 * kMiB, options), alone(file.bytes, 8 * kMiB, options);
      for (const SamplerOptions& sampler : samplers()) {
        ASSERT_TRUE(host.session->rewind(0) && alone.session->rewind(0));
        Prompt prompt = greedy(ids, 30);
        prompt.sampler = sampler;
        const Passes forced = run(host, prompt, false), plain = run(alone, prompt, true);
        EXPECT_EQ(forced.made.tokens, plain.made.tokens) << variant.name << chunk;
        EXPECT_EQ(forced.made.text, plain.made.text) << variant.name << chunk;
        EXPECT_EQ(forced.made.tokens.size(), 30u);
        EXPECT_GE(plain.n, 30u);
        if (chunk == 0) {
          EXPECT_LE(forced.n, plain.n - 30 / kPeriod * (kRun - 1));
        }
        EXPECT_LT(forced.n, plain.n);
        // The sequence goes on with the same bits, whichever of its tokens were computed.
        EXPECT_EQ(host.generate(greedy(more, 8)).hash, alone.generate(greedy(more, 8)).hash) << variant.name << chunk;
        EXPECT_TRUE(std::ranges::equal(host.session->tokens(), alone.session->tokens())) << variant.name;
      }
    }
  }
}

// A generation ends at the same token and for the same reason, and rewinding works within a run.
TEST(Forced, TokensEndAsOthersDo) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, kVocab), more = some_tokens(2, kVocab, 11);
  for (std::uint32_t context = 12; context < 40; ++context) {
    OpenOptions options;
    options.max_seq_len = context;
    Host host(file.bytes, 8 * kMiB, options), alone(file.bytes, 8 * kMiB, options);
    for (const std::uint32_t most : {context / 2, 100u}) {
      ASSERT_TRUE(host.session->rewind(0) && alone.session->rewind(0));
      EXPECT_EQ(run(host, greedy(ids, most), false).made.tokens, run(alone, greedy(ids, most), true).made.tokens);
      EXPECT_EQ(host.session->end(), alone.session->end()) << context << " " << most;
      EXPECT_TRUE(std::ranges::equal(host.session->tokens(), alone.session->tokens()));
      const std::uint32_t left = static_cast<std::uint32_t>(host.session->tokens().size()) - 3;
      ASSERT_TRUE(host.session->rewind(left) && alone.session->rewind(left));
      EXPECT_EQ(host.generate(greedy(more, 1)).hash, alone.generate(greedy(more, 1)).hash) << context << " " << most;
    }
  }
}

// Another sequence's pass must not replace a row of logits that a forced token writes to.
TEST(Forced, TokensLeaveOtherSequencesAlone) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, kVocab);
  Host one(file.bytes, 8 * kMiB, {});
  const std::vector<std::uint32_t> held = run(one, greedy(ids, 30), true).made.tokens;
  ASSERT_TRUE(one.session->rewind(0));
  const Generation free = one.generate(greedy(ids, 30));
  for (const std::uint32_t chunk : {2u, 3u, 0u}) {
    OpenOptions options;
    options.sequences = 3;
    options.chunk = chunk;
    Host host(file.bytes, 8 * kMiB, options);
    std::array<std::uint64_t, 3> allowed{set_of(0), 0, set_of(0)};
    std::array<std::vector<std::uint32_t>, 3> tokens;
    for (std::uint32_t i = 0; i < 3; ++i) {
      Prompt prompt = greedy(ids, 30);
      prompt.hash_logits = i == 1;
      if (i != 1) prompt.allowed = std::span(&allowed[i], 1);
      ASSERT_TRUE(host.session->start(prompt, i));
    }
    for (Step step = Step::working; step != Step::ready;) {
      step = host.session->step();
      ASSERT_NE(step, Step::error) << host.session->error().sentence;
      while (const auto r = host.session->next_request()) {
        std::memcpy(r->into, file.bytes.data() + r->offset, r->size);
        ASSERT_TRUE(host.session->complete(r->ticket));
      }
      if (step != Step::token) continue;
      const std::uint32_t at = host.session->sequence();
      tokens[at].push_back(host.session->token());
      allowed[at] = set_of(static_cast<std::uint32_t>(tokens[at].size()));
    }
    EXPECT_EQ(tokens[0], held) << chunk;
    EXPECT_EQ(tokens[1], free.tokens) << chunk;
    EXPECT_EQ(tokens[2], held) << chunk;
    EXPECT_EQ(host.session->logits_hash(1), free.hash) << chunk;
  }
}

// What a host expects is only guessed: right, wrong and impossible tokens change no bit.
TEST(Forced, ExpectedTokensAreGuesses) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, kVocab);
  Host alone(file.bytes, 8 * kMiB, {});
  Prompt prompt = greedy(ids, 30);
  prompt.sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .seed = 5};
  const Generation plain = alone.generate(prompt);
  for (const std::uint32_t wrong_from : {0u, 2u, 15u}) {
    for (const std::uint32_t wrong : {(plain.tokens[3] + 1) % kVocab, kVocab, 0xFFFFFFFFu}) {
      OpenOptions options;
      options.guesses = 7;
      Host host(file.bytes, 8 * kMiB, options);
      ExpectedTokens expected;
      prompt.expected = &expected;
      host.stop_when = [&] {
        const std::uint32_t known = host.session->sequence_stats().generated_tokens;
        expected.n = std::min<std::uint32_t>(kMostGuesses, 30 - known);
        for (std::uint32_t i = 0; i < expected.n; ++i) {
          expected.ids[i] = i < wrong_from ? plain.tokens[known + i] : wrong;
        }
        return false;
      };
      const Generation made = host.generate(prompt);
      EXPECT_EQ(made.tokens, plain.tokens) << wrong_from << " " << wrong;
      EXPECT_EQ(made.hash, plain.hash) << wrong_from << " " << wrong;
      const SequenceStats stats = host.session->sequence_stats();
      if (wrong_from == 2) {
        EXPECT_GT(stats.right_tokens, 15u);
      }
      if (wrong_from == 15) {
        EXPECT_EQ(stats.right_tokens, stats.guessed_tokens);
      }
      if (wrong_from == 15) {
        EXPECT_GT(stats.right_tokens, 22u);
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
