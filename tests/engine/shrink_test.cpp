// Policies that keep fewer positions from some token on: against a reference in double precision that keeps the same
// ones, and against themselves.
#include <algorithm>
#include <cstring>

#include "engine/host.h"
#include "engine/reference.h"
#include "engine/variants.h"
#include "tests/support/error_of.h"
#include "tests/support/farthest.h"
#include "tests/support/saved.h"

namespace qsf::test {
namespace {

using Few = std::vector<std::uint32_t>;

struct Shrinking {
  const char* name;
  ReferencePolicy kept;
};
// SnapKV of N positions is full at N, and then after each half of N.
const Shrinking kShrinking[] = {
    {"window", {24, 0, 0, 40, 11}},
    {"window early", {24, 0, 0, 8, 11}},
    {"window at 24", {24, 0, 0, 24, 23}},
    {"all", {200, 0, 0, 40, 16}},
    {"sinks", {24, 4, 0, 61, 10}},
    {"sinks early", {24, 4, 0, 20, 1}},
    {"h2o", {32, 0, 1, 61, 16}},
    {"h2o odd", {33, 0, 1, 50, 17}},
    {"h2o early", {32, 0, 1, 20, 16}},
    {"h2o before it chooses", {64, 0, 1, 30, 20}},
    {"snapkv", {32, 0, 2, 48, 16}},
    {"snapkv odd", {40, 0, 2, 60, 17}},
    {"snapkv of all slots", {32, 0, 2, 32, 31}},
    {"snapkv early", {32, 0, 2, 10, 16}},
    {"snapkv full after", {36, 0, 2, 54, 24}},
};

OpenOptions with(const ReferencePolicy& policy, OpenOptions options = {}) {
  options.kv_window = policy.window;
  options.kv_sinks = policy.sinks;
  options.kv_chosen = policy.chosen;
  return options;
}

std::uint64_t unused_bytes(Session& session) {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < session.stats().sequences; ++i) bytes += session.unused(i).size();
  return bytes;
}

/// Shrinks, and overwrites the memory that is free then.
void shrink(Host& host, std::uint32_t to) {
  const Result<bool> done = host.session->shrink(to);
  ASSERT_TRUE(done) << done.error().sentence;
  ASSERT_TRUE(*done);
  EXPECT_EQ(host.session->stats().kv_window, to);
  for (std::uint32_t i = 0; i < host.session->stats().sequences; ++i) {
    const std::span<std::byte> unused = host.session->unused(i);
    std::memset(unused.data(), 0xff, unused.size());
  }
}

// No code and no choice of these tokens is so near to a tie that single precision decides otherwise.
constexpr std::uint32_t kSeed = 10;

struct Halves {
  std::vector<std::uint32_t> before, after;
};
Halves halves(const ReferencePolicy& policy, std::uint32_t vocabulary) {
  const std::vector<std::uint32_t> all = some_tokens(90, vocabulary, kSeed);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(policy.shrinks_at);
  return {{all.begin(), middle}, {middle, all.end()}};
}

TEST(Shrink, AgreesWithDoublePrecision) {
  for (const auto& [name, policy] : kShrinking) {
    std::size_t n = 0;
    for (Named& variant : variants()) {
      variant.options.max_seq_len = 200;
      const SmallFile file = small_file(variant.options);
      for (const KvType type : {KvType::f32, KvType::q8, KvType::q4}) {
        if (type != KvType::f32 && std::string_view(variant.name) != "plain") continue;
        OpenOptions options = with(policy, with_logits());
        options.kv = type;
        Host host(file.bytes, 8 * kMiB, options);
        if (host.error.code == ErrorCode::unsupported) continue;
        ++n;
        const Halves ids = halves(policy, variant.options.vocab_size);
        Vec logits;
        const Generation before = host.generate(all_logits(ids.before, 0));
        ASSERT_EQ(before.error.code, ErrorCode::none) << before.error.sentence;
        shrink(host, policy.smaller);
        EXPECT_GT(unused_bytes(*host.session), 0u) << name << " " << variant.name;
        const Generation after = host.generate(all_logits(ids.after, 0));
        std::vector<float> found = before.logits;
        found.insert(found.end(), after.logits.begin(), after.logits.end());
        for (const Vec& row : reference_logits(variant.options, file,
                                               some_tokens(90, variant.options.vocab_size, kSeed), type, policy)) {
          logits.insert(logits.end(), row.begin(), row.end());
        }
        EXPECT_LT(relative_difference(found, logits), 1e-4) << name << ", " << variant.name << " " << kv_name(type);
      }
    }
    EXPECT_GT(n, 10u) << name;
  }
}

SmallOptions of_200() {
  SmallOptions o;
  o.max_seq_len = 200;
  return o;
}

// Rotated types also have exact positions, 64 of the last ones before and after.
TEST(Shrink, ExactPositionsMoveToo) {
  const SmallFile file = small_file(of_200());
  for (const ReferencePolicy& policy : {ReferencePolicy{90, 0, 0, 120, 70}, {90, 5, 0, 120, 66}}) {
    OpenOptions options = with(policy, with_logits());
    options.kv = KvType::k8v4;
    Host host(file.bytes, 8 * kMiB, options);
    const std::vector<std::uint32_t> ids = some_tokens(160, 40, 5);
    std::vector<float> found = host.generate(all_logits({ids.begin(), ids.begin() + 120}, 0)).logits;
    shrink(host, policy.smaller);
    const Generation after = host.generate(all_logits({ids.begin() + 120, ids.end()}, 0));
    found.insert(found.end(), after.logits.begin(), after.logits.end());
    Vec logits;
    for (const Vec& row : reference_logits(of_200(), file, ids, *options.kv, policy)) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LT(relative_difference(found, logits), 1e-4);
  }
}

TEST(Shrink, SameBitsWhateverThePlan) {
  const SmallFile file = small_file(of_200());
  for (const auto& [name, policy] : kShrinking) {
    std::string expected;
    for (const std::uint32_t chunk : {1u, 5u, 16u, 64u}) {
      for (const Kernels* kernels : available_kernels()) {
        OpenOptions options = with(policy);
        options.chunk = chunk;
        options.isa = kernels->isa;
        options.stream_all = chunk == 5;
        options.sequences = chunk == 16 ? 3 : 1;
        Host host(file.bytes, 8 * kMiB, options);
        const Halves ids = halves(policy, 40);
        (void)host.generate(greedy(ids.before, 0));
        shrink(host, policy.smaller);
        const std::string hash = host.generate(greedy(ids.after, 20)).hash;
        if (expected.empty()) expected = hash;
        EXPECT_EQ(hash, expected) << name << " chunk " << chunk << " " << kernels->isa;
      }
    }
  }
}

// A second time, and all sequences at once.
TEST(Shrink, AllSequencesShrinkAgain) {
  const SmallFile file = small_file(of_200());
  for (const std::uint32_t chosen : {0u, 1u}) {
    const auto text = [&](std::uint32_t sequences, std::uint32_t sequence) {
      OpenOptions options = with({40, 0, chosen});
      options.sequences = sequences;
      Host host(file.bytes, 8 * kMiB, options);
      std::string hash;
      for (const std::uint32_t to : {0u, 30u, 17u}) {
        if (to != 0) shrink(host, to);
        for (std::uint32_t i = 0; i < sequences; ++i) {
          if (sequences == 1 || i == sequence) continue;
          EXPECT_TRUE(host.session->start(greedy(some_tokens(60, 40, 7 + i), 0), i));
          (void)host.pump();
        }
        EXPECT_TRUE(host.session->start(greedy(some_tokens(50, 40, to + 1), 5), sequence));
        (void)host.pump();
        hash = host.session->logits_hash(sequence);
      }
      return hash;
    };
    EXPECT_EQ(text(3, 2), text(1, 0)) << chosen;
    EXPECT_EQ(text(3, 1), text(1, 0)) << chosen;
  }
}

TEST(Shrink, SnapKvWaitsUntilItsSlotsAreFull) {
  const SmallFile file = small_file(of_200());
  OpenOptions options = with({32, 0, 2});
  options.sequences = 2;
  Host host(file.bytes, 8 * kMiB, options);
  (void)host.generate(greedy(some_tokens(39, 40), 0));
  int waited = 0;
  host.stop_when = [&] {
    const Result<bool> done = host.session->shrink(16);
    EXPECT_TRUE(done);
    waited += *done ? 0 : 1;
    return *done;
  };
  (void)host.generate(greedy(Few{3}, 20));
  EXPECT_EQ(host.session->sequence_stats().position, 48u);
  EXPECT_EQ(host.session->stats().kv_window, 16u);
  EXPECT_GT(waited, 8);
}

TEST(Shrink, GoingBackStaysInReach) {
  const SmallFile file = small_file(of_200());
  for (const std::uint32_t back : {1u, 9u, 15u, 16u, 17u, 40u}) {
    const ReferencePolicy policy{24, 4, 0, 61, 10};
    Host host(file.bytes, 8 * kMiB, with(policy));
    const std::vector<std::uint32_t> ids = some_tokens(61, 40, 5);
    (void)host.generate(greedy(ids, 0));
    shrink(host, policy.smaller);
    ASSERT_TRUE(host.session->rewind(61 - back));
    const std::string hash = host.generate(greedy(Few{1, 2, 3}, 20)).hash;
    // Too far back, all is computed anew, under the smaller policy.
    Host other(file.bytes, 8 * kMiB, with(policy));
    if (back > 16) shrink(other, policy.smaller);
    (void)other.generate(greedy(Few{ids.begin(), ids.end() - back}, 0));
    if (back <= 16) shrink(other, policy.smaller);
    EXPECT_EQ(other.generate(greedy(Few{1, 2, 3}, 20)).hash, hash) << back;
  }
}

TEST(Shrink, SavedSequencesHaveTheSmallerPolicy) {
  const SmallFile file = small_file(of_200());
  Host host(file.bytes, 8 * kMiB, with({24, 4}));
  (void)host.generate(greedy(some_tokens(50, 40), 3));
  ASSERT_TRUE(host.session->begin_save());
  shrink(host, 12);
  std::array<std::byte, 64> bytes{};
  EXPECT_EQ(error_of(host.session->save(bytes)).code, ErrorCode::bad_state);
  const auto kept = saved(*host.session);
  ASSERT_TRUE(kept);
  Host larger(file.bytes, 8 * kMiB, with({24, 4})), smaller(file.bytes, 8 * kMiB, with({12, 4}));
  EXPECT_EQ(restored(*larger.session, *kept).error().code, ErrorCode::mismatch);
  ASSERT_TRUE(restored(*smaller.session, *kept));
  EXPECT_EQ(smaller.generate(greedy(Few{3, 4}, 20)).hash, host.generate(greedy(Few{3, 4}, 20)).hash);
}

TEST(Shrink, IsRefusedWithoutAPolicyAndWaitsInAPass) {
  const SmallFile file = small_file(of_200());
  Host all(file.bytes, 8 * kMiB, {});
  EXPECT_EQ(error_of(all.session->shrink(16)).code, ErrorCode::unsupported);
  EXPECT_TRUE(all.session->unused().empty());
  // As many positions as the context: nothing is chosen.
  Host whole(file.bytes, 8 * kMiB, with({200, 0, 1}));
  EXPECT_EQ(error_of(whole.session->shrink(16)).code, ErrorCode::unsupported);
  Host host(file.bytes, 8 * kMiB, with({24}));
  EXPECT_EQ(error_of(host.session->shrink(0)).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(Host(file.bytes, 8 * kMiB, with({24, 0, 1})).session->shrink(15)).code, ErrorCode::bad_argument);
  EXPECT_TRUE(*host.session->shrink(24));
  EXPECT_TRUE(*host.session->shrink(100));
  EXPECT_EQ(host.session->stats().kv_window, 24u);
  EXPECT_TRUE(host.session->unused().empty());
  EXPECT_TRUE(host.session->unused(1).empty());
  ASSERT_TRUE(host.session->start(greedy(some_tokens(30, 40), 0)));
  EXPECT_EQ(host.session->step(), Step::working);
  EXPECT_FALSE(*host.session->shrink(12));
  (void)host.pump();
  EXPECT_TRUE(*host.session->shrink(12));
}

}  // namespace
}  // namespace qsf::test
