#include "stream/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace qsf {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

/// 40 matrices of 256 KiB and 8 small vectors, in order of use.
std::vector<SegmentNeed> segments() {
  std::vector<SegmentNeed> all;
  for (int layer = 0; layer < 8; ++layer) {
    all.push_back({4 * kKiB, true, false});
    for (int i = 0; i < 5; ++i) all.push_back({256 * kKiB, false, false});
  }
  return all;
}

/// What the parts of a session take, beside weights.
struct Sizes {
  std::uint64_t fixed = kMiB;
  std::array<std::uint64_t, kKvNames.size()> kv_per_position{8 * kKiB, 4 * kKiB, 2 * kKiB + 64, kKiB + 256,
                                                             kKiB / 2 + 256};
  std::uint64_t per_position = 4, per_column = 8 * kKiB, embedding_row = kKiB, per_scored = 0;
  std::vector<SegmentNeed> segments;

  std::uint64_t without_weights(const Plan& p) const {
    return fixed + p.max_seq_len * (per_position + kv_per_position[static_cast<std::size_t>(p.kv)]) +
           p.chunk * per_column + p.embedding_rows * embedding_row + p.scored_tokens * per_scored;
  }
  static std::uint64_t slots(const Plan& p) {
    const std::uint64_t table = (p.chosen_slots * 24 + 63) / 64 * 64;
    return p.ring_slots * p.slot_bytes + p.chosen_slots * p.chosen_slot_bytes + table;
  }
  static std::uint64_t bytes(const void* context, const Plan& p) {
    const Sizes& sizes = *static_cast<const Sizes*>(context);
    std::uint64_t total = sizes.without_weights(p) + slots(p);
    for (const SegmentNeed& s : sizes.segments) total += p.ring_slots == 0 || s.vectors ? s.bytes : 0;
    return total;
  }
};

PlanInput input(const Sizes& sizes, std::uint64_t budget) {
  PlanInput in;
  in.budget = budget;
  in.segments = sizes.segments;
  in.measure = {&sizes, Sizes::bytes};
  in.model_seq_len = 1024;
  return in;
}
Sizes sizes() {
  Sizes sizes;
  sizes.segments = segments();
  return sizes;
}

struct Made {
  Result<Plan> plan;
  std::vector<bool> pinned;
};
Made make(const PlanInput& in) {
  std::unique_ptr<bool[]> pinned(new bool[in.segments.size()]());
  Result<Plan> plan = make_plan(in, {pinned.get(), in.segments.size()});
  return {plan, std::vector<bool>(pinned.get(), pinned.get() + in.segments.size())};
}

/// The plan's bytes counted anew from what it says.
std::uint64_t count(const Sizes& sizes, const Made& made) {
  const Plan& p = *made.plan;
  std::uint64_t total = sizes.without_weights(p) + Sizes::slots(p);
  for (std::size_t i = 0; i < sizes.segments.size(); ++i) total += made.pinned[i] ? sizes.segments[i].bytes : 0;
  return total;
}

TEST(Plan, KeepsEverythingResidentWhenItFits) {
  const Sizes all = sizes();
  const Made made = make(input(all, 64 * kMiB));
  ASSERT_TRUE(made.plan);
  EXPECT_EQ(made.plan->ring_slots, 0u);
  EXPECT_EQ(made.plan->max_seq_len, 1024u);
  EXPECT_EQ(made.plan->kv, KvType::f16);
  EXPECT_EQ(made.plan->embedding_rows, 0u);
  EXPECT_EQ(std::count(made.pinned.begin(), made.pinned.end(), true), static_cast<long>(all.segments.size()));
}

TEST(Plan, NeverPassesAnyBudgetAndIsWhatItSays) {
  const Sizes all = sizes();
  int plans = 0, refusals = 0;
  for (std::uint64_t budget = kMiB / 2; budget < 20 * kMiB; budget += 97 * kKiB) {
    const PlanInput in = input(all, budget);
    const Made made = make(in);
    if (!made.plan) {
      EXPECT_EQ(made.plan.error().code, ErrorCode::budget_too_small);
      ++refusals;
      continue;
    }
    ++plans;
    EXPECT_LE(made.plan->total, budget);
    EXPECT_EQ(made.plan->total, count(all, made)) << budget;
    for (std::size_t i = 0; i < all.segments.size(); ++i) {
      EXPECT_TRUE(made.pinned[i] || !all.segments[i].vectors);
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(refusals, 2);
}

TEST(Plan, ReducesInOrder) {
  const Sizes all = sizes();
  int stage = 0;
  for (std::uint64_t budget = 20 * kMiB; budget > kMiB; budget -= 16 * kKiB) {
    const Made made = make(input(all, budget));
    if (!made.plan) break;
    const Plan& p = *made.plan;
    // context, KV precision, embedding rows, chunk and double buffering: none is given up before those to its left
    const int kv = static_cast<int>(p.kv) - static_cast<int>(KvType::f16);  // 0 to 3
    const int now = p.ring_slots == 0 ? 0 : p.chunk == 1 ? 7 : p.chunk == 8 ? 6 : p.embedding_rows == 0 ? 5 : 1 + kv;
    EXPECT_TRUE(p.ring_slots == 0 || p.ring_slots == 3u || p.kv == KvType::q2);
    if (now > 0) {
      EXPECT_GE(now, stage) << budget;
      stage = std::max(stage, now);
    }
  }
  EXPECT_EQ(stage, 7);
}

// Groups of 32 take more than a byte for each of a few values: such heads stay at 8 bits.
TEST(Plan, TakesNoCoarserTypeThatIsLarger) {
  Sizes all = sizes();
  all.kv_per_position = {32, 16, 12, 20, 12};
  PlanInput in = input(all, 2 * kMiB);
  for (in.budget = 20 * kMiB; make(in).plan; in.budget -= 64 * kKiB) {
    EXPECT_LE(make(in).plan->kv, KvType::q8) << in.budget;
  }
}

TEST(Plan, RefusalNamesABudgetThatDoes) {
  const Sizes all = sizes();
  const Made refused = make(input(all, kMiB + 100 * kKiB));
  ASSERT_FALSE(refused.plan);
  const std::string sentence = refused.plan.error().sentence;
  double needed = 0;
  ASSERT_EQ(std::sscanf(sentence.c_str(), "this model needs at least %lf MiB", &needed), 1) << sentence;
  EXPECT_TRUE(make(input(all, static_cast<std::uint64_t>(needed * kMiB))).plan) << sentence;
  EXPECT_FALSE(make(input(all, static_cast<std::uint64_t>((needed - 0.02) * kMiB))).plan) << sentence;
}

TEST(Plan, KeepsWishes) {
  const Sizes all = sizes();
  PlanInput in = input(all, 8 * kMiB);
  in.max_seq_len = 700;
  in.chunk = 7;
  in.ring_slots = 2;
  in.kv = static_cast<int>(KvType::f16);
  const Made made = make(in);
  ASSERT_TRUE(made.plan);
  EXPECT_EQ(made.plan->max_seq_len, 700u);
  EXPECT_EQ(made.plan->chunk, 7u);
  EXPECT_EQ(made.plan->ring_slots, 2u);
  EXPECT_EQ(made.plan->kv, KvType::f16);
  in.max_seq_len = 4000;  // 16 MB of keys and values
  EXPECT_FALSE(make(in).plan);
}

TEST(Plan, APassIsNoWiderThanAllSequences) {
  const Sizes all = sizes();
  PlanInput in = input(all, 64 * kMiB);
  in.max_seq_len = 100;
  in.chunk = 450;
  for (const std::uint32_t sequences : {1u, 4u, 5u}) {
    in.sequences = sequences;
    const Made made = make(in);
    ASSERT_TRUE(made.plan);
    EXPECT_EQ(made.plan->chunk, std::min(450u, 100 * sequences));
  }
}

TEST(Plan, SpreadsStreamedSegmentsOverThePass) {
  const Sizes all = sizes();
  PlanInput in = input(all, 0);
  in.max_seq_len = 256;
  in.kv = static_cast<int>(KvType::f16);
  in.chunk = 8;
  in.ring_slots = 2;
  const std::uint64_t base =
      all.fixed + 8 * 4 * kKiB + 2 * 256 * kKiB + 256 * (4 * kKiB + 4) + 8 * 8 * kKiB + 64 * kKiB;
  in.budget = base + 20 * 256 * kKiB;  // room for half of the matrices
  const Made made = make(in);
  ASSERT_TRUE(made.plan);
  int streamed = 0, run = 0, longest = 0;
  for (std::size_t i = 0; i < all.segments.size(); ++i) {
    if (all.segments[i].vectors) continue;
    run = made.pinned[i] ? 0 : run + 1;
    longest = std::max(longest, run);
    streamed += made.pinned[i] ? 0 : 1;
  }
  EXPECT_EQ(streamed, 20);
  EXPECT_LE(longest, 2);
}

/// Dense weights are pinned before anything is kept of what is chosen, and look-ups after all of it has a slot.
TEST(Plan, KeepsWhatIsChosenBehindWhatEveryPassUses) {
  Sizes all = sizes();
  for (int i = 0; i < 100; ++i) all.segments.push_back({100 * kKiB, false, false, true});
  all.segments.push_back({50 * kKiB, false, true});
  int dense_only = 0, some = 0, whole = 0;
  for (std::uint64_t budget = 2 * kMiB; budget < 30 * kMiB; budget += 83 * kKiB) {
    PlanInput in = input(all, budget);
    in.max_seq_len = 256;
    const Made made = make(in);
    if (!made.plan) continue;
    const Plan& p = *made.plan;
    EXPECT_LE(p.total, budget);
    EXPECT_EQ(p.total, count(all, made)) << budget;
    if (p.ring_slots == 0) {
      EXPECT_EQ(p.chosen_slots, 0u);
      ++whole;
      continue;
    }
    bool dense = true;
    for (std::size_t i = 0; i < all.segments.size(); ++i) {
      const SegmentNeed& s = all.segments[i];
      EXPECT_FALSE(s.chosen && made.pinned[i]);
      if (!s.chosen && !s.lookup) dense &= made.pinned[i];
    }
    EXPECT_TRUE(dense || p.chosen_slots <= 2) << "less than a dense segment may be left: " << budget;
    EXPECT_TRUE(p.chosen_slots == 0 || p.chosen_slot_bytes >= 100 * kKiB);
    // Another one would not have fitted.
    const std::uint64_t free = budget - p.total;
    EXPECT_TRUE(p.chosen_slots == 100 || free < 101 * kKiB || !dense) << budget;
    dense_only += p.chosen_slots == 0 ? 1 : 0;
    some += p.chosen_slots > 2 ? 1 : 0;
  }
  EXPECT_GT(dense_only, 3);
  EXPECT_GT(some, 3);
  EXPECT_GT(whole, 3);
}

/// As wide as a 32nd of what is `left` allows, no wider than `widest`.
void expect_widened(const Sizes& sizes, const Plan& p, std::uint64_t left, std::uint32_t widest) {
  EXPECT_LE((p.chunk - 32) * sizes.per_column, left / 32) << left;
  EXPECT_TRUE(p.chunk == widest || (2 * p.chunk - 32) * sizes.per_column > left / 32) << left;
}

/// Where segments are chosen, passes become wider for a 32nd of what is left, unless the caller said how wide.
TEST(Plan, WidensPassesThatChoose) {
  Sizes all = sizes();
  for (int i = 0; i < 100; ++i) all.segments.push_back({100 * kKiB, false, false, true});
  all.per_column = 3 * kKiB;
  std::set<std::uint32_t> seen;
  for (std::uint64_t budget = 10 * kMiB; budget < 30 * kMiB; budget += 333 * kKiB) {
    PlanInput in = input(all, budget);
    const Made made = make(in);
    ASSERT_TRUE(made.plan);
    const Plan& p = *made.plan;
    EXPECT_LE(p.total, budget);
    EXPECT_EQ(p.total, count(all, made)) << budget;
    seen.insert(p.chunk);
    in.chunk = 32;
    const Made narrow = make(in);
    ASSERT_TRUE(narrow.plan);
    EXPECT_EQ(narrow.plan->chunk, 32u);
    if (p.ring_slots == 0) {
      expect_widened(all, p, budget - p.resident_budget, 128);
      continue;
    }
    Plan bare = *narrow.plan;
    bare.chosen_slots = 0;
    expect_widened(all, p, budget - Sizes::bytes(&all, bare), 256);
  }
  EXPECT_EQ(seen, (std::set<std::uint32_t>{32, 64, 128}));
}

/// Where everything stays passes become wider and there is room for the scores of more tokens, but for no more than a
/// pass has, each for a 32nd of what is left.
TEST(Plan, SharesMoreReadingsWhereEverythingStays) {
  Sizes all = sizes();
  all.per_scored = 20 * kKiB;
  std::set<std::uint32_t> chunks, scored;
  for (std::uint64_t budget = 4 * kMiB; budget < 80 * kMiB; budget += 333 * kKiB) {
    PlanInput in = input(all, budget);
    in.max_seq_len = 256;
    const Made made = make(in);
    ASSERT_TRUE(made.plan);
    const Plan& p = *made.plan;
    EXPECT_LE(p.total, budget);
    EXPECT_EQ(p.total, count(all, made)) << budget;
    chunks.insert(p.chunk);
    scored.insert(p.scored_tokens);
    if (p.ring_slots != 0) {
      EXPECT_EQ(p.chunk, 32u);
      EXPECT_EQ(p.scored_tokens, 4u);
      continue;
    }
    const std::uint64_t left = budget - p.resident_budget, columns = (p.chunk - 32) * all.per_column;
    expect_widened(all, p, left, 128);
    const auto takes = [&](std::uint32_t tokens) { return (tokens - 4) * all.per_scored; };
    EXPECT_LE(takes(p.scored_tokens), (left - columns) / 32) << budget;
    EXPECT_TRUE(p.scored_tokens == std::min(p.chunk, 64u) || takes(2 * p.scored_tokens) > (left - columns) / 32)
        << budget;
    in.chunk = 8;
    EXPECT_LE(make(in).plan->scored_tokens, 8u);
  }
  EXPECT_EQ(chunks, (std::set<std::uint32_t>{32, 64, 128}));
  EXPECT_EQ(scored, (std::set<std::uint32_t>{4, 8, 16, 32, 64}));
}

TEST(Plan, StreamAllPinsOnlyVectors) {
  const Sizes all = sizes();
  PlanInput in = input(all, 64 * kMiB);
  in.stream_all = true;
  in.ring_slots = 1;
  const Made made = make(in);
  ASSERT_TRUE(made.plan);
  EXPECT_EQ(made.plan->ring_slots, 1u);
  for (std::size_t i = 0; i < all.segments.size(); ++i) EXPECT_EQ(made.pinned[i], all.segments[i].vectors);
}

TEST(Plan, ExpectsWhatReadingAndComputingTake) {
  const Speed speed{100e6, 1000e6};
  EXPECT_DOUBLE_EQ(expected_rate(speed, 0, 500e6, 0), 2);
  EXPECT_DOUBLE_EQ(expected_rate(speed, 100e6, 500e6, 1), 1 / 1.5) << "one slot: first read, then computed with";
  EXPECT_DOUBLE_EQ(expected_rate(speed, 100e6, 500e6, 4), 1 / 1.125);
  EXPECT_DOUBLE_EQ(expected_rate(speed, 10e6, 500e6, 4), 1 / 0.525);
  EXPECT_EQ(expected_rate({}, 100e6, 500e6, 4), 0);
  EXPECT_EQ(expected_rate({0, 1000e6}, 100e6, 500e6, 4), 0);
  EXPECT_DOUBLE_EQ(expected_rate({0, 1000e6}, 0, 500e6, 0), 2) << "nothing is read";
}

// The ring has room for the largest segment; of others it holds more, up to four for each slot.
TEST(Plan, ExpectsOfARingWhatItHolds) {
  constexpr std::uint64_t kLargest = 256 * kKiB;
  for (const std::uint64_t small : {256u, 128u, 64u, 32u}) {
    Sizes all;
    for (int i = 0; i < 40; ++i) all.segments.push_back({i == 0 ? kLargest : small * kKiB, false, false});
    for (SegmentNeed& s : all.segments) s.read = s.computed = static_cast<std::uint32_t>(s.bytes);
    PlanInput in = input(all, 100 * kMiB);
    in.stream_all = true;
    in.ring_slots = 3;
    in.speed = {100e6, 1000e6};
    const Made made = make(in);
    ASSERT_TRUE(made.plan);
    const double bytes = made.plan->bytes_read;
    const double held = std::min(12.0, 3.0 * kLargest / (bytes / 40));
    EXPECT_DOUBLE_EQ(made.plan->rate, 1 / (bytes / 100e6 + bytes / 1000e6 / held)) << small;
  }
}

// More memory is never slower to be expected, and with what is said to hold everything, everything is held.
TEST(Plan, SaysWhichBudgetHoldsEverything) {
  Sizes all = sizes();
  for (SegmentNeed& s : all.segments) s.read = s.computed = static_cast<std::uint32_t>(s.bytes);
  double before = 0;
  int streaming = 0;
  for (std::uint64_t budget = 3 * kMiB; budget < 20 * kMiB; budget += 256 * kKiB) {
    PlanInput in = input(all, budget);
    in.max_seq_len = 256;
    in.kv = static_cast<int>(KvType::q8);
    in.speed = {100e6, 1000e6};
    const Made made = make(in);
    if (!made.plan) {
      const std::string sentence = made.plan.error().sentence;
      EXPECT_NE(sentence.find("everything stays: about 95.1 tokens/s instead of "), std::string::npos) << sentence;
      continue;
    }
    const Plan& plan = *made.plan;
    double read = 0, computed = 0;
    for (std::size_t i = 0; i < all.segments.size(); ++i) {
      computed += all.segments[i].computed;
      if (!made.pinned[i]) read += all.segments[i].read;
    }
    EXPECT_DOUBLE_EQ(plan.bytes_read, read);
    EXPECT_DOUBLE_EQ(plan.bytes_computed, computed);
    EXPECT_GE(plan.rate, before);
    before = plan.rate;
    if (plan.ring_slots == 0) continue;
    ++streaming;
    EXPECT_LT(plan.rate, plan.resident_rate);
    in.chunk = plan.chunk;
    in.budget = plan.resident_budget;
    const Made enough = make(in);
    ASSERT_TRUE(enough.plan);
    EXPECT_EQ(enough.plan->ring_slots, 0u);
    EXPECT_DOUBLE_EQ(enough.plan->rate, plan.resident_rate);
    in.budget = plan.resident_budget - 1;
    const Made less = make(in);
    EXPECT_TRUE(less.plan && less.plan->ring_slots != 0);
  }
  EXPECT_GT(streaming, 10);
}

}  // namespace
}  // namespace qsf
