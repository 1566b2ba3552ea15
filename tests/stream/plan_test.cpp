#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "stream/plan_sizes.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

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
      EXPECT_EQ(error_of(made.plan).code, ErrorCode::budget_too_small);
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

// Sequences that decode share a pass in every plan; the context becomes shorter for it.
TEST(Plan, APassHasAColumnForEachSequence) {
  const Sizes all = sizes();
  int plans = 0, shorter = 0;
  for (std::uint64_t budget = kMiB / 2; budget < 20 * kMiB; budget += 97 * kKiB) {
    PlanInput in = input(all, budget);
    in.sequences = in.columns = 4;
    const Made made = make(in);
    if (!made.plan) continue;
    ++plans;
    shorter += made.plan->max_seq_len < 256 && made.plan->chunk >= 4 ? 1 : 0;
    // One column is left only if four do not fit with the least context.
    in.columns = 1;
    in.chunk = 4;
    EXPECT_EQ(made.plan->chunk >= 4, bool(make(in).plan)) << budget;
    EXPECT_LE(made.plan->total, budget);
  }
  EXPECT_GT(plans, 50);
  EXPECT_GT(shorter, 0) << "no plan has given up its context";
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
  in.budget = Budget(base + 20 * 256 * kKiB);  // room for half of the matrices
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
      EXPECT_EQ(p.expert_slots, 0u);
      ++whole;
      continue;
    }
    bool dense = true;
    for (std::size_t i = 0; i < all.segments.size(); ++i) {
      const SegmentNeed& s = all.segments[i];
      EXPECT_FALSE(s.chosen && made.pinned[i]);
      if (!s.chosen && !s.lookup) dense &= made.pinned[i];
    }
    EXPECT_TRUE(dense || p.expert_slots <= 2) << "less than a dense segment may be left: " << budget;
    EXPECT_TRUE(p.expert_slots == 0 || p.expert_slot_bytes >= 100 * kKiB);
    // Another one would not have fitted.
    const std::uint64_t free = budget - p.total;
    EXPECT_TRUE(p.expert_slots == 100 || free < 101 * kKiB || !dense) << budget;
    dense_only += p.expert_slots == 0 ? 1 : 0;
    some += p.expert_slots > 2 ? 1 : 0;
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
    in.max_seq_len = 256;
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
    bare.expert_slots = 0;
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

/// What a pass reads twice is pinned before what it reads once, and of the others as evenly as ever.
TEST(Plan, PinsFirstWhatAPassReadsTwice) {
  Sizes all = sizes();
  for (std::size_t i = all.segments.size() - 8; i < all.segments.size(); ++i) {
    if (!all.segments[i].vectors) all.segments[i].uses = 2;
  }
  const auto twice = static_cast<std::size_t>(std::ranges::count(all.segments, 2, &SegmentNeed::uses));
  ASSERT_GT(twice, 5u);
  for (const std::uint64_t budget : {8 * kMiB, 10 * kMiB}) {
    PlanInput in = input(all, budget);
    in.max_seq_len = 64;
    const Made made = make(in);
    ASSERT_TRUE(made.plan) << made.plan.error().sentence;
    ASSERT_NE(made.plan->ring_slots, 0u);
    EXPECT_EQ(made.plan->total, count(all, made));
    std::size_t pinned_twice = 0, pinned_once = 0, early = 0, once = 0;
    for (std::size_t i = 0; i < all.segments.size(); ++i) {
      if (all.segments[i].vectors) continue;
      (all.segments[i].uses == 2 ? pinned_twice : pinned_once) += made.pinned[i] ? 1 : 0;
      if (all.segments[i].uses == 2) continue;
      ++once;
      early += made.pinned[i] && i < (all.segments.size() - 8) / 2 ? 1 : 0;
    }
    EXPECT_EQ(pinned_twice, twice);
    EXPECT_GT(pinned_once, 3u);
    EXPECT_LT(pinned_once, once);
    EXPECT_NEAR(static_cast<double>(early), static_cast<double>(pinned_once) / 2, 1.5);
  }
  PlanInput in = input(all, 8 * kMiB);
  for (SegmentNeed& s : all.segments) s.read = 1000;
  in.segments = all.segments;
  in.stream_all = true;
  const Made made = make(in);
  ASSERT_TRUE(made.plan);
  EXPECT_EQ(made.plan->bytes_read, 1000.0 * static_cast<double>(40 + twice));
}

/// A segment, or the slot of one, is taken with the budget that it needs to the byte, and not with a byte less: none of
/// the ways to spend what is left passes the budget.
TEST(Plan, PinsToTheByte) {
  constexpr std::uint64_t kSegment = 256 * kKiB;
  struct Way {
    const char* name;
    void (*change)(SegmentNeed& s);
  };
  const Way ways[] = {
      {"any", [](SegmentNeed&) {}},
      {"used twice", [](SegmentNeed& s) { s.uses = 2; }},
      {"looked up", [](SegmentNeed& s) { s.lookup = true; }},
      {"experts", [](SegmentNeed& s) { s.chosen = true; }},
  };
  for (const Way& way : ways) {
    Sizes all = sizes();
    for (SegmentNeed& s : all.segments) {
      if (!s.vectors) way.change(s);
    }
    PlanInput in = input(all, 8 * kMiB);
    in.max_seq_len = 256;
    in.kv = static_cast<int>(KvType::f16);
    in.chunk = 8;
    in.ring_slots = 2;
    in.stream_all = true;
    const std::uint64_t base = make(in).plan->total;
    in.stream_all = false;
    const auto taken = [&](std::uint64_t budget) {
      in.budget = Budget(budget);
      const Made made = make(in);
      EXPECT_TRUE(made.plan) << way.name;
      EXPECT_LE(made.plan->total, budget) << way.name;
      EXPECT_EQ(made.plan->total, count(all, made)) << way.name;
      return std::ranges::count(made.pinned, true) - 8 + made.plan->expert_slots;
    };
    for (std::uint64_t n = 1; n < 6; ++n) {
      const std::uint64_t table = all.segments[1].chosen ? (n * 24 + 63) / 64 * 64 : 0;  // of the slots
      const std::uint64_t needed = base + n * kSegment + table;
      EXPECT_EQ(taken(needed), n) << way.name;
      for (const std::uint64_t less : {1u, 63u, 64u}) EXPECT_EQ(taken(needed - less), n - 1) << way.name << " " << less;
    }
  }
}

bool operator==(const Plan& a, const Plan& b) {
  const auto all = [](const Plan& p) {
    return std::tuple(p.kv, p.max_seq_len, p.context_why, p.chunk, p.scored_tokens, p.embedding_rows, p.ring_slots,
                      p.slot_bytes, p.expert_slots, p.pinned_bytes, p.total, p.rate, p.resident_budget);
  };
  return all(a) == all(b);
}

/// The sizes of a session without options decide the precision alone: with a precision that the caller chose, a plan
/// and its refusal are the same whatever those sizes are.
TEST(Plan, PlainSizesDecideThePrecisionAlone) {
  Sizes all = sizes();
  for (int i = 0; i < 40; ++i) all.segments.push_back({100 * kKiB, false, false, true});
  for (SegmentNeed& s : all.segments) s.read = s.computed = static_cast<std::uint32_t>(s.bytes);
  all.per_scored = 20 * kKiB;
  all.kv_per_position = {256, 128, 72, 48, 32};
  int plans = 0, refusals = 0;
  for (std::uint64_t budget = kMiB; budget < 60 * kMiB; budget += 333 * kKiB) {
    for (const std::uint32_t chunk : {0u, 7u}) {
      PlanInput in = input(all, budget);
      in.model_seq_len = 20'000;
      in.kv = static_cast<int>(KvType::f16);
      in.chunk = chunk;
      in.speed = {100e6, 1000e6};
      const Made expected = make(in);
      in.plain = {nullptr, [](const void*, const Plan&) { return std::uint64_t{1}; }};
      const Made nothing = make(in);
      in.plain = {nullptr, [](const void*, const Plan&) { return std::uint64_t{1} << 40; }};
      const Made much = make(in);
      for (const Made* other : {&nothing, &much}) {
        ASSERT_EQ(static_cast<bool>(other->plan), static_cast<bool>(expected.plan)) << budget;
        if (expected.plan) {
          EXPECT_TRUE(*other->plan == *expected.plan) << budget << " " << chunk;
          EXPECT_EQ(other->pinned, expected.pinned) << budget << " " << chunk;
        } else {
          EXPECT_STREQ(error_of(other->plan).sentence, error_of(expected.plan).sentence);
        }
      }
      (expected.plan ? plans : refusals) += 1;
    }
  }
  EXPECT_GT(plans, 100);
  EXPECT_GT(refusals, 2);
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

}  // namespace
}  // namespace qsf::test
