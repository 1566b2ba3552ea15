// Prompts that begin a sequence anew: tokens that are computed already are not computed again, and no bit shows it.
#include "engine/host.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

Prompt anew(const Ids& ids, std::uint32_t max_tokens) {
  Prompt prompt = greedy(ids, max_tokens);
  prompt.anew = true;
  return prompt;
}

/// The generation of a session that knows nothing else.
Generation alone(const SmallFile& file, const Ids& ids, std::uint32_t max_tokens) {
  return Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, max_tokens));
}

bool has_states(const Named& variant) {
  for (std::uint32_t layer = 0; layer < variant.options.n_layers && variant.options.shape; ++layer) {
    LayerKind kind;
    variant.options.shape(layer, kind);
    if (kind.mixer == Mixer::short_conv || kind.has_state()) return true;
  }
  return false;
}

bool has_windows(const Named& variant) {
  LayerKind kind;
  for (std::uint32_t layer = 0; layer < variant.options.n_layers && variant.options.shape; ++layer) {
    variant.options.shape(layer, kind);
    if (kind.window != 0) return true;
  }
  return variant.options.window != 0;
}

/// Tokens that two texts begin with.
std::uint32_t common(const Ids& a, const Ids& b) {
  return static_cast<std::uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

TEST(Reuse, PromptsHaveTheBitsThatTheyHaveAlone) {
  const Ids text = some_tokens(40, 40);
  std::vector<Ids> prompts;
  for (const std::uint32_t n : {30u, 30u, 34u, 7u, 30u, 1u, 1u}) prompts.emplace_back(text.begin(), text.begin() + n);
  prompts.push_back(some_tokens(25, 39, 3));
  prompts.push_back(prompts[2]);
  prompts.back()[17] = (prompts.back()[17] + 1) % 40;
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    for (const std::uint32_t chunk : {3u, 0u}) {
      OpenOptions options;
      options.chunk = chunk;
      Host host(file.bytes, 8 * kMiB, options);
      Ids before;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const std::string what = std::string(variant.name) + ", prompt " + std::to_string(i);
        const Ids& ids = prompts[i];
        const Generation made = host.generate(anew(ids, 4)), expected = alone(file, ids, 4);
        EXPECT_EQ(made.hash, expected.hash) << what;
        EXPECT_EQ(made.tokens, expected.tokens) << what;
        const SequenceStats stats = host.session->sequence_stats();
        const auto n = static_cast<std::uint32_t>(ids.size());
        EXPECT_EQ(stats.prompt_tokens, n) << what;
        EXPECT_LT(stats.reused_tokens, n) << what;
        EXPECT_LE(stats.reused_tokens, common(before, ids)) << what;
        if (!has_states(variant) && !has_windows(variant)) {
          EXPECT_EQ(stats.reused_tokens, std::min(common(before, ids), n - 1)) << what;
        }
        before.assign(host.session->tokens().begin(), host.session->tokens().end() - 1);  // the last one is not fed
      }
    }
  }
}

TEST(Reuse, TheSamePromptIsNotComputedAgain) {
  const Ids ids = some_tokens(40, 40);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    OpenOptions options;
    options.chunk = 8;
    Host host(file.bytes, 8 * kMiB, options);
    (void)host.generate(anew(ids, 0));
    for (int i = 0; i < 3; ++i) {
      const Generation made = host.generate(anew(ids, 2));
      EXPECT_EQ(made.hash, alone(file, ids, 2).hash) << variant.name;
      // A state goes back to its checkpoint, which is before the prompt's last pass.
      const std::uint32_t least = has_states(variant) ? 32 : 39;
      EXPECT_GE(host.session->sequence_stats().reused_tokens, least) << variant.name << ", " << i;
    }
  }
}

TEST(Reuse, LogitsThatAreWantedAreComputed) {
  const SmallFile file = small_file();
  const Ids ids = some_tokens(20, 40);
  const Generation expected = Host(file.bytes, 8 * kMiB, with_logits()).generate(all_logits(ids, 3));
  Host host(file.bytes, 8 * kMiB, with_logits());
  for (const std::uint32_t from : {0u, 0u, 7u, 19u, 25u}) {
    Prompt prompt = all_logits(ids, 3);
    prompt.anew = true;
    prompt.logits_from = from;
    const Generation made = host.generate(prompt);
    const std::size_t left_out = std::min<std::size_t>(from, 22) * 40;
    EXPECT_EQ(made.logits, std::vector<float>(expected.logits.begin() + static_cast<std::ptrdiff_t>(left_out),
                                              expected.logits.end()))
        << from;
  }
}

TEST(Reuse, ARefusedPromptChangesNothing) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids = some_tokens(20, 40), rest{3};
  (void)host.generate(anew(ids, 3));
  const Ids tokens(host.session->tokens().begin(), host.session->tokens().end());
  Prompt wrong = anew(some_tokens(65, 40), 3);
  EXPECT_EQ(error_of(host.session->start(wrong)).code, ErrorCode::context_full);
  EXPECT_EQ(error_of(host.session->start(anew({1, 40}, 3))).code, ErrorCode::bad_token);
  EXPECT_EQ(error_of(host.session->start(anew({}, 3))).code, ErrorCode::bad_text) << "there is no tokenizer";
  const std::vector<std::string_view> stops(9, "a");
  Prompt stopping = anew(ids, 3);
  stopping.stops = stops;
  EXPECT_EQ(error_of(host.session->start(stopping)).code, ErrorCode::bad_argument);
  EXPECT_EQ(Ids(host.session->tokens().begin(), host.session->tokens().end()), tokens);
  Ids all = tokens;
  all.push_back(3);
  EXPECT_EQ(host.generate(greedy(rest, 3)).hash, alone(file, all, 3).hash);
}

TEST(Reuse, TheSequencesOwnTokensCanBeThePrompt) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  (void)host.generate(anew(some_tokens(20, 40), 3));
  const Ids tokens(host.session->tokens().begin(), host.session->tokens().end());
  Prompt prompt = greedy(host.session->tokens(), 3);
  prompt.anew = true;
  EXPECT_EQ(host.generate(prompt).hash, alone(file, tokens, 3).hash);
  EXPECT_EQ(host.session->sequence_stats().reused_tokens, 22u);
}

TEST(Reuse, AStoppedPromptIsReusedAsFarAsItCame) {
  const Ids ids = some_tokens(40, 40);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    OpenOptions options;
    options.chunk = 8;
    const std::string expected = alone(file, ids, 3).hash;
    for (int stop_after = 5; stop_after < 200; stop_after += 31) {
      Host host(file.bytes, 8 * kMiB, options);
      int steps = 0;
      host.stop_when = [&] { return ++steps == stop_after; };
      (void)host.generate(anew(ids, 3));
      host.stop_when = nullptr;
      EXPECT_EQ(host.generate(anew(ids, 3)).hash, expected) << variant.name << ", step " << stop_after;
    }
  }
}

TEST(Reuse, OtherSequencesGiveWhatTheyHave) {
  const Ids ids = some_tokens(40, 40);
  for (const Named& variant : variants()) {
    const SmallFile file = small_file(variant.options);
    const std::string expected = alone(file, ids, 5).hash;
    for (const bool runs : {false, true}) {
      OpenOptions options;
      options.sequences = 3;
      options.chunk = 8;
      Host host(file.bytes, 8 * kMiB, options);
      ASSERT_TRUE(host.session->start(anew(ids, 5), 1));
      // While the other generates its second token, or after its end.
      std::size_t tokens = 0;
      host.stop_when = [&] { return runs && host.session->tokens(1).size() == 42 && ++tokens == 3; };
      (void)host.pump();
      host.stop_when = nullptr;
      ASSERT_TRUE(host.session->start(anew(ids, 5), 2));
      const std::uint32_t reused = host.session->sequence_stats(2).reused_tokens;
      EXPECT_GE(reused, has_states(variant) ? 32u : 39u) << variant.name;
      while (host.session->end(1) == End::none || host.session->end(2) == End::none) (void)host.pump();
      for (const std::uint32_t sequence : {1u, 2u}) {
        EXPECT_EQ(host.session->logits_hash(sequence), expected) << variant.name << ", " << runs;
      }
      // Both go on by themselves.
      Ids all(host.session->tokens(2).begin(), host.session->tokens(2).end());
      all.push_back(8);
      ASSERT_TRUE(host.session->start(greedy(Ids{8}, 3), 2));
      (void)host.pump();
      EXPECT_EQ(host.session->logits_hash(2), alone(file, all, 3).hash) << variant.name;
    }
  }
}

TEST(Reuse, NothingIsCopiedIntoASequenceThatAPassStillWrites) {
  const SmallFile file = small_file();
  const Ids a = some_tokens(40, 40), b = some_tokens(30, 37, 2);
  OpenOptions options;
  options.sequences = 2;
  options.chunk = 64;
  Host host(file.bytes, 8 * kMiB, options);
  ASSERT_TRUE(host.session->start(anew(a, 9), 0));
  std::size_t tokens = 0;
  host.stop_when = [&] { return host.session->tokens(0).size() > 40 && ++tokens == 1; };
  (void)host.pump();
  ASSERT_TRUE(host.session->start(anew(b, 9), 1));
  tokens = 0;
  host.stop_when = [&] { return ++tokens == 4; };
  (void)host.pump();  // a pass has columns of both
  host.stop_when = nullptr;
  ASSERT_TRUE(host.session->start(anew(a, 5), 1));
  EXPECT_EQ(host.session->sequence_stats(1).reused_tokens, 0u);
  while (host.session->end(0) == End::none || host.session->end(1) == End::none) (void)host.pump();
  EXPECT_EQ(host.session->logits_hash(1), alone(file, a, 5).hash);
  EXPECT_EQ(host.session->logits_hash(0), alone(file, a, 9).hash);
}

TEST(Reuse, AnEmbeddingsTokensAreReused) {
  const SmallFile file = small_file();
  Host host(file.bytes, 8 * kMiB, {});
  const Ids ids = some_tokens(20, 40);
  EmbedPrompt text;
  text.tokens = ids;
  EXPECT_EQ(host.embed(text).error.code, ErrorCode::none);
  EXPECT_EQ(host.generate(anew(ids, 3)).hash, alone(file, ids, 3).hash);
  EXPECT_EQ(host.session->sequence_stats().reused_tokens, 19u);
}

}  // namespace
}  // namespace qsf::test
