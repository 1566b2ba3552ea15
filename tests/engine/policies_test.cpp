// Sequences that keep a part of their positions: against a reference in double precision that keeps the same ones, and
// against themselves, because passes, instruction sets, guesses, reuse and saving must not change a bit.
#include <thread>

#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"
#include "tests/support/farthest.h"
#include "tests/support/saved.h"

namespace qsf::test {
namespace {

using Ids = std::vector<std::uint32_t>;

struct Policy {
  const char* name;
  ReferencePolicy kept;
  OpenOptions with(OpenOptions options) const {
    options.kv_window = kept.window;
    options.kv_sinks = kept.sinks;
    options.kv_chosen = kept.chosen;
    return options;
  }
};
const Policy kPolicies[] = {
    {"window:16", {16}},    {"window:1", {1}},      {"sinks:4+12", {12, 4}},   {"sinks:20+5", {5, 20}},
    {"h2o:16", {16, 0, 1}}, {"h2o:17", {17, 0, 1}}, {"snapkv:16", {16, 0, 2}}, {"snapkv:23", {23, 0, 2}},
};

bool chooses(const Policy& policy) { return policy.kept.chosen != 0; }

/// Variants that a policy is possible with.
std::vector<Named> evicting(const Policy& policy) {
  std::vector<Named> all;
  for (Named& variant : variants()) {
    variant.options.max_seq_len = 200;
    Host host(small_file(variant.options).bytes, 8 * kMiB, policy.with(with_logits()));
    if (host.error.code == ErrorCode::none) all.push_back(variant);
    if (host.error.code != ErrorCode::none) {
      EXPECT_EQ(host.error.code, ErrorCode::unsupported) << host.error.sentence;
    }
  }
  return all;
}

SmallOptions longer() {
  SmallOptions o;
  o.max_seq_len = 400;
  return o;
}

// Choices near a tie may differ from those in double; none does, of these seeds.
TEST(Policies, AgreeWithDoublePrecision) {
  for (const Policy& policy : kPolicies) {
    const std::vector<Named> all = evicting(policy);
    EXPECT_GT(all.size(), 10u) << policy.name;
    EXPECT_NE(std::ranges::find(all, std::string_view("attention with Mamba-2, xIELU"), &Named::name), all.end())
        << policy.name;
    for (const Named& variant : all) {
      const SmallFile file = small_file(variant.options);
      const Ids ids = some_tokens(70, variant.options.vocab_size, 5);
      for (std::size_t type = 0; type < kKvNames.size(); ++type) {
        if (type > 0 && std::string_view(variant.name) != "plain") continue;
        if (type > static_cast<std::size_t>(KvType::k4v4)) continue;
        OpenOptions options = policy.with(with_logits());
        options.kv = static_cast<KvType>(type);
        Host host(file.bytes, 8 * kMiB, options);
        const Generation run = host.generate(all_logits(ids, 0));
        ASSERT_EQ(run.error.code, ErrorCode::none) << variant.name << ": " << run.error.sentence;
        const auto expected = reference_logits(variant.options, file, ids, *options.kv, policy.kept);
        Vec logits;
        for (const Vec& row : expected) logits.insert(logits.end(), row.begin(), row.end());
        EXPECT_LT(relative_difference(run.logits, logits), 1e-4)
            << policy.name << ", " << variant.name << " " << kKvNames[type];
      }
    }
  }
}

// Longer than what is exact, so that positions are read both ways, and under a choice one way only.
TEST(Policies, ExactPositionsAreAmongThoseThatStay) {
  const SmallFile file = small_file(longer());
  const Ids ids = some_tokens(120, 40);
  for (const Policy& policy : {Policy{"window:70", {70}}, {"sinks:9+68", {68, 9}}, {"snapkv:70", {70, 0, 2}}}) {
    OpenOptions options = policy.with(with_logits());
    options.kv = KvType::k8v4;
    options.chunk = 1;
    const Generation run = Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 0));
    Vec logits;
    for (const Vec& row : reference_logits(longer(), file, ids, *options.kv, policy.kept)) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LT(relative_difference(run.logits, logits), 1e-4) << policy.name;
    for (const std::uint32_t chunk : {7u, 0u}) {
      options.chunk = chunk;
      EXPECT_EQ(Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 0)).hash, run.hash)
          << policy.name << " chunk " << chunk;
    }
  }
}

TEST(Policies, SameBitsWhateverThePlan) {
  const SmallFile file = small_file(longer());
  const Ids ids = some_tokens(150, 40);
  for (const Policy& policy : kPolicies) {
    for (std::size_t type = 0; type <= static_cast<std::size_t>(KvType::k8v4); ++type) {
      OpenOptions options = policy.with(with_logits());
      options.kv = static_cast<KvType>(type);
      options.chunk = 1;
      const std::string expected = Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 20)).hash;
      for (const std::uint32_t chunk : {7u, 40u, 0u}) {
        options.chunk = chunk;
        for (const Kernels* kernels : available_kernels()) {
          options.isa = kernels->isa;
          EXPECT_EQ(Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 20)).hash, expected)
              << policy.name << " " << kKvNames[type] << " chunk " << chunk << kernels->isa;
        }
      }
      options.stream_all = true;
      EXPECT_EQ(Host(file.bytes, 16 * kMiB, options).generate(all_logits(ids, 20)).hash, expected) << policy.name;
    }
  }
}

TEST(Policies, SameBitsOnAnyNumberOfThreads) {
  const SmallFile file = small_file(longer());
  const Ids ids = some_tokens(60, 40);
  for (const Policy& policy : kPolicies) {
    const std::string expected = Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(ids, 20)).hash;
    for (const std::uint32_t threads : {2u, 3u, 8u}) {
      OpenOptions options = policy.with({});
      options.workers = {run_on_threads, nullptr, threads};
      EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, 20)).hash, expected) << policy.name;
    }
  }
}

TEST(Policies, ChangeNothingBeforeTheLanesAreFull) {
  const SmallFile file = small_file(longer());
  const Ids ids = some_tokens(10, 40);
  const Generation all = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 7));
  for (const Policy& policy : kPolicies) {
    if (policy.kept.window + policy.kept.sinks < 16) continue;
    const Generation made = Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(ids, 7));
    EXPECT_EQ(made.hash, all.hash) << policy.name;
  }
  const Ids more = some_tokens(40, 40);
  const std::string whole = Host(file.bytes, 8 * kMiB, {}).generate(greedy(more, 1)).hash;
  for (const Policy& policy : kPolicies) {
    EXPECT_NE(Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(more, 1)).hash, whole) << policy.name;
  }
}

/// Returns the bytes of keys and values.
std::uint64_t lane_bytes(const Session& session) {
  const auto map = session.memory_map();
  const auto found = std::ranges::find(map, Region::kv_cache, &MemoryRegion::region);
  return found == map.end() ? 0 : found->bytes;
}

TEST(Policies, AConversationOfTenTimesTheCacheGoesOn) {
  const SmallFile file = small_file(longer());
  for (const Policy& policy : kPolicies) {
    Host host(file.bytes, 8 * kMiB, policy.with({}));
    ASSERT_NE(host.session, nullptr);
    OpenOptions shorter = policy.with({});
    shorter.max_seq_len = 60;
    const Host other(file.bytes, 8 * kMiB, shorter);
    EXPECT_EQ(lane_bytes(*host.session), lane_bytes(*other.session)) << policy.name;
    EXPECT_LT(lane_bytes(*host.session), lane_bytes(*Host(file.bytes, 8 * kMiB, {}).session) / 4) << policy.name;
    Ids all;
    std::string last;
    while (all.size() < 340) {
      const Ids turn = some_tokens(17, 40, all.size());
      const Generation made = host.generate(greedy(turn, 9));
      ASSERT_EQ(made.error.code, ErrorCode::none);
      ASSERT_EQ(made.tokens.size(), 9u);
      all.assign(host.session->tokens().begin(), host.session->tokens().end());
      last = made.hash;
    }
    all.resize(all.size() - 9);
    const Generation alone = Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(all, 9));
    EXPECT_EQ(alone.hash, last) << policy.name;
  }
}

TEST(Policies, GoBackAndBeginAnewWithTheSameBits) {
  const SmallFile file = small_file(longer());
  for (const Policy& policy : kPolicies) {
    for (const auto& [length, back] : std::initializer_list<std::pair<std::size_t, std::uint32_t>>{
             {60, 0}, {60, 1}, {60, 2}, {60, 3}, {60, 9}, {60, 30}, {5, 2}, {5, 6}}) {
      OpenOptions options = policy.with({});
      options.sequences = 2;
      options.chunk = 5;
      Host host(file.bytes, 8 * kMiB, options);
      (void)host.generate(greedy(some_tokens(length, 40), 10));
      const auto n = static_cast<std::uint32_t>(host.session->tokens().size()) - back;
      ASSERT_TRUE(host.session->rewind(n));
      Ids all(host.session->tokens().begin(), host.session->tokens().end());
      const Ids more{3, 1, 4};
      all.insert(all.end(), more.begin(), more.end());
      const std::string expected = Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(all, 40)).hash;
      EXPECT_EQ(host.generate(greedy(more, 40)).hash, expected) << policy.name << " " << length << " back " << back;
      Prompt anew = greedy(all, 40);
      anew.anew = true;
      EXPECT_EQ(host.generate(anew).hash, expected) << policy.name << " " << length << " back " << back;
      const Status other = host.session->start(anew, 1);
      ASSERT_TRUE(other);
      (void)host.pump();
      EXPECT_EQ(host.session->logits_hash(1), expected) << policy.name << " " << length << " back " << back;
    }
  }
}

TEST(Policies, AStoppedPassLeavesNothing) {
  const SmallFile file = small_file(longer());
  for (const Policy& policy : kPolicies) {
    for (int steps = 1; steps < 60; steps += 7) {
      OpenOptions options = policy.with({});
      options.chunk = 6;
      Host host(file.bytes, 8 * kMiB, options);
      (void)host.generate(greedy(some_tokens(50, 40), 4));
      int left = steps;
      host.stop_when = [&] { return --left == 0; };
      (void)host.generate(greedy(some_tokens(20, 40), 9));
      host.stop_when = nullptr;
      host.session->stop();
      Ids all(host.session->tokens().begin(), host.session->tokens().end());
      const Ids more{9, 2};
      all.insert(all.end(), more.begin(), more.end());
      const std::string expected = Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(all, 5)).hash;
      EXPECT_EQ(host.generate(greedy(more, 5)).hash, expected) << policy.name << " " << steps;
    }
  }
}

TEST(Policies, GuessesChangeNothing) {
  const SmallFile file = small_file(longer());
  Ids ids;
  for (std::uint32_t i = 0; i < 60; ++i) ids.push_back(i % 6);
  for (const Policy& policy : kPolicies) {
    OpenOptions options = policy.with({});
    const Generation expected = Host(file.bytes, 8 * kMiB, options).generate(greedy(ids, 80));
    options.guesses = 15;
    Host host(file.bytes, 8 * kMiB, options);
    const Generation made = host.generate(greedy(ids, 80));
    EXPECT_EQ(made.tokens, expected.tokens) << policy.name;
    EXPECT_EQ(made.hash, expected.hash) << policy.name;
    EXPECT_EQ(host.session->stats().guesses, chooses(policy) ? 0u : 15u);
    if (!chooses(policy)) {
      EXPECT_GT(host.session->sequence_stats().guessed_tokens, 0u) << policy.name;
    }
  }
}

TEST(Policies, SavedSequencesContinueUnderTheSamePolicyOnly) {
  const SmallFile file = small_file(longer());
  for (const Policy& policy : kPolicies) {
    OpenOptions options = policy.with({});
    options.chunk = 4;
    Host host(file.bytes, 8 * kMiB, options);
    for (const std::uint32_t length : {5u, 14u, 40u, 111u}) {
      const Ids ids = some_tokens(length, 40);
      Prompt anew = greedy(ids, 6);
      anew.anew = true;
      (void)host.generate(anew);
      const auto bytes = saved(*host.session);
      if (chooses(policy)) {
        EXPECT_EQ(error_of(bytes).code, ErrorCode::unsupported);
        continue;
      }
      ASSERT_TRUE(bytes);
      OpenOptions same = policy.with({});
      same.max_seq_len = 130;
      for (const std::uint32_t back : {0u, 1u, 4u, 60u}) {
        Host other(file.bytes, 8 * kMiB, same);
        ASSERT_TRUE(restored(*other.session, *bytes));
        EXPECT_EQ(*saved(*other.session), *bytes) << policy.name << " " << length;
        const auto n = static_cast<std::uint32_t>(other.session->tokens().size());
        ASSERT_TRUE(other.session->rewind(n - std::min(n, back)));
        Ids all(other.session->tokens().begin(), other.session->tokens().end());
        const Ids more{3, 1};
        all.insert(all.end(), more.begin(), more.end());
        EXPECT_EQ(other.generate(greedy(more, 6)).hash,
                  Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(all, 6)).hash)
            << policy.name << " " << length << " back " << back;
      }
      for (const Policy& another : kPolicies) {
        if (&another == &policy) continue;
        Host other(file.bytes, 8 * kMiB, another.with({}));
        EXPECT_EQ(error_of(restored(*other.session, *bytes)).code,
                  chooses(another) ? ErrorCode::unsupported : ErrorCode::mismatch);
      }
      Host without(file.bytes, 8 * kMiB, {});
      const Error refused = error_of(restored(*without.session, *bytes));
      EXPECT_EQ(refused.code, ErrorCode::mismatch);
      EXPECT_NE(std::string_view(refused.sentence).find("the policy " + std::string(policy.name) + ","),
                std::string_view::npos)
          << refused.sentence;
    }
  }
}

// A copy for another sequence takes the kept positions only.
TEST(Policies, AnotherSequencesPositionsAreReused) {
  const SmallFile file = small_file(longer());
  for (const Policy& policy : kPolicies) {
    OpenOptions options = policy.with({});
    options.sequences = 2;
    Host host(file.bytes, 8 * kMiB, options);
    const Ids ids = some_tokens(120, 40);
    (void)host.generate(greedy(ids, 0));
    Ids longer_ids = ids;
    longer_ids.push_back(7);
    Prompt anew = greedy(longer_ids, 8);
    anew.anew = true;
    ASSERT_TRUE(host.session->start(anew, 1));
    (void)host.pump();
    EXPECT_EQ(host.session->sequence_stats(1).reused_tokens, chooses(policy) ? 0u : 120u) << policy.name;
    EXPECT_EQ(host.session->logits_hash(1),
              Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(longer_ids, 8)).hash)
        << policy.name;
  }
}

TEST(Policies, AreRefusedIfTheyCannotBeExact) {
  struct Case {
    const char* what;
    ReferencePolicy kept;
    void (*shape)(std::uint32_t layer, LayerKind& kind);
    ErrorCode code;
  };
  const auto none = [](std::uint32_t, LayerKind&) {};
  const auto alibi = [](std::uint32_t, LayerKind& kind) {
    kind.alibi = 1;
    kind.rope_dims = 0;
  };
  const Case cases[] = {
      {"sinks alone", {0, 4}, none, ErrorCode::bad_argument},
      {"a choice alone", {0, 0, 1}, none, ErrorCode::bad_argument},
      {"a choice with sinks", {16, 4, 1}, none, ErrorCode::bad_argument},
      {"a choice among few", {15, 0, 2}, none, ErrorCode::bad_argument},
      {"sinks with distances", {16, 4}, alibi, ErrorCode::unsupported},
      {"a choice with distances", {16, 0, 1}, alibi, ErrorCode::unsupported},
      {"a window with distances", {16}, alibi, ErrorCode::none},
      {"windows in all layers", {16}, [](std::uint32_t, LayerKind& kind) { kind.window = 6; }, ErrorCode::unsupported},
      {"latents in all layers",
       {16, 0, 1},
       [](std::uint32_t, LayerKind& kind) {
         kind.mixer = Mixer::latent;
         kind.n_kv_heads = 1;
         kind.latent_dim = 32;
         kind.rope_dims = 6;
         kind.head_dim = 38;
         kind.latent_head_dim = 14;
         kind.latent_value_dim = 16;
       },
       ErrorCode::none},
      {"windows in one",
       {16},
       [](std::uint32_t layer, LayerKind& kind) { kind.window = layer == 0 ? 6 : 0; },
       ErrorCode::none},
      {"a choice of shared keys",
       {16, 0, 1},
       [](std::uint32_t layer, LayerKind& kind) { kind.kv_from = layer == 1 ? 1 : 0; },
       ErrorCode::unsupported},
      {"sinks of shared keys",
       {16, 2},
       [](std::uint32_t layer, LayerKind& kind) { kind.kv_from = layer == 1 ? 1 : 0; },
       ErrorCode::none},
  };
  for (const Case& c : cases) {
    SmallOptions o;
    o.shape = c.shape;
    const Policy policy{c.what, c.kept};
    EXPECT_EQ(Host(small_file(o).bytes, 8 * kMiB, policy.with({})).error.code, c.code) << c.what;
  }
}

// A policy that keeps as many positions as the context has is none.
TEST(Policies, KeepAllOfAShorterContext) {
  const SmallFile file = small_file();
  const Ids ids = some_tokens(50, 40);
  const std::string expected = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 10)).hash;
  for (const Policy& policy : {Policy{"window", {64}}, Policy{"sinks", {60, 100}}, Policy{"h2o", {64, 0, 1}},
                               Policy{"snapkv", {9999, 0, 2}}}) {
    EXPECT_EQ(Host(file.bytes, 8 * kMiB, policy.with({})).generate(greedy(ids, 10)).hash, expected) << policy.name;
  }
}

}  // namespace
}  // namespace qsf::test
