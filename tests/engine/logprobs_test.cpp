// Log-probabilities of generated tokens, against softmax in long double over the rows of logits that the session
// returns.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using List = std::vector<TokenLogprob>;

OpenOptions with_logprobs(std::uint32_t guesses = 0) {
  OpenOptions options;
  options.logprobs = true;
  options.kv = KvType::f16;
  options.guesses = guesses;
  return options;
}

struct Made {
  std::vector<std::uint32_t> tokens;
  std::vector<List> lists;
};

/// Generates, and keeps the log-probabilities of each token.
Made generate(const SmallFile& file, const OpenOptions& options, const Prompt& prompt) {
  Host host(file.bytes, 8 * kMiB, options);
  Made run;
  std::size_t seen = 0;
  host.stop_when = [&] {
    if (host.session->sequence_stats().generated_tokens == seen) return false;
    ++seen;
    const auto found = host.session->logprobs();
    run.lists.emplace_back(found.begin(), found.end());
    return false;
  };
  run.tokens = host.generate(prompt).tokens;
  return run;
}

/// Returns the rows of logits from which the tokens after `ids` were sampled, [tokens, vocabulary].
std::vector<std::vector<float>> rows_of(const SmallFile& file, std::vector<std::uint32_t> ids,
                                        const std::vector<std::uint32_t>& tokens) {
  const std::size_t first = ids.size() - 1;
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  const Generation all = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 0));
  const std::size_t width = all.logits.size() / ids.size();
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto at = all.logits.begin() + static_cast<std::ptrdiff_t>((first + i) * width);
    rows.emplace_back(at, at + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

TEST(Logprobs, AreThoseOfTheModel) {
  SmallOptions shape;
  shape.vocab_size = 333;
  const SmallFile file = small_file(shape);
  const auto ids = some_tokens(11, 333);
  std::uint64_t allowed[6] = {0b11010, 0, ~std::uint64_t{0}, 0, 0, 0};
  const TokenBias biases[] = {{3, 4.0f}, {9, -std::numeric_limits<float>::infinity()}};
  std::vector<Prompt> prompts(4, greedy(ids, 20));
  prompts[1].sampler = {.temperature = 1.3f, .top_k = 0, .top_p = 0.9f, .seed = 5};
  prompts[1].sampler.repetition_penalty = 1.4f;
  prompts[1].sampler.logit_bias = biases;
  prompts[2].allowed = allowed;
  prompts[3].sampler = {.temperature = 1, .seed = 2, .mirostat = 2};
  for (const std::uint32_t top : {0u, 1u, 5u, 20u}) {
    for (Prompt& prompt : prompts) {
      prompt.logprobs = true;
      prompt.top_logprobs = top;
      const Made run = generate(file, with_logprobs(), prompt);
      ASSERT_EQ(run.tokens.size(), 20u);
      const auto rows = rows_of(file, ids, run.tokens);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        long double sum = 0;
        for (const float logit : rows[i]) sum += std::exp(static_cast<long double>(logit));
        const auto wanted = [&](std::uint32_t token) { return rows[i][token] - std::log(sum); };
        const List& list = run.lists[i];
        ASSERT_EQ(list.size(), 1 + top);
        EXPECT_EQ(list[0].token, run.tokens[i]);
        for (const TokenLogprob& one : list) EXPECT_NEAR(one.logprob, wanted(one.token), 2e-6L * -wanted(one.token));
        std::vector<std::uint32_t> order(rows[i].size());
        for (std::uint32_t id = 0; id < order.size(); ++id) order[id] = id;
        std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
          return std::pair(-rows[i][a], a) < std::pair(-rows[i][b], b);
        });
        for (std::uint32_t k = 0; k < top; ++k) EXPECT_EQ(list[1 + k].token, order[k]) << i << " " << k;
      }
    }
  }
}

TEST(Logprobs, AreTheSameForGuessedTokens) {
  const SmallFile file = small_file();
  auto ids = some_tokens(9, 40);
  const auto once = ids;
  ids.insert(ids.end(), once.begin(), once.end());
  Prompt prompt = greedy(ids, 40);
  prompt.logprobs = true;
  prompt.top_logprobs = 3;
  const Made plain = generate(file, with_logprobs(), prompt), guessed = generate(file, with_logprobs(7), prompt);
  ASSERT_EQ(plain.tokens, guessed.tokens);
  for (std::size_t i = 0; i < plain.lists.size(); ++i) {
    for (std::size_t k = 0; k < plain.lists[i].size(); ++k) {
      EXPECT_EQ(plain.lists[i][k].token, guessed.lists[i][k].token);
      EXPECT_EQ(plain.lists[i][k].logprob, guessed.lists[i][k].logprob);
    }
  }
}

TEST(Logprobs, AreEmptyUnlessAskedFor) {
  const SmallFile file = small_file();
  const auto ids = some_tokens(9, 40);
  const Made run = generate(file, with_logprobs(), greedy(ids, 5));
  for (const List& list : run.lists) EXPECT_TRUE(list.empty());
  Prompt prompt = greedy(ids, 5);
  prompt.logprobs = true;
  Host host(file.bytes, 8 * kMiB, {});
  EXPECT_STREQ(error_of(host.session->start(prompt)).sentence,
               "log-probabilities need a model that was opened with the option logprobs");
  Host open(file.bytes, 8 * kMiB, with_logprobs());
  prompt.top_logprobs = 21;
  EXPECT_STREQ(error_of(open.session->start(prompt)).sentence,
               "the log-probabilities of 21 tokens were asked for; at most 20 are possible");
}

}  // namespace
}  // namespace qsf::test
