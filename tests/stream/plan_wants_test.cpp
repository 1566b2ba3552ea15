// What is wanted of a plan, in which order, and what is told of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string>

#include "stream/plan_sizes.h"

namespace qsf::test {
namespace {

/// Without a wish precision is the last to be given up: before come weights, context, embedding rows, width of passes
/// and double buffering, each before those behind it.
TEST(Plan, ReducesInOrder) {
  const Sizes all = sizes();
  int stage = 0;
  KvType kv = KvType::f16;
  std::uint32_t context = 1024;
  std::array<int, kKvNames.size()> plans{};
  for (std::uint64_t budget = 20 * kMiB; budget > kMiB; budget -= 16 * kKiB) {
    const Made made = make(input(all, budget));
    if (!made.plan) break;
    const Plan& p = *made.plan;
    const int now = p.ring_slots == 0 ? 0 : p.chunk == 1 ? 4 : p.chunk == 8 ? 3 : p.embedding_rows == 0 ? 2 : 1;
    EXPECT_GE(p.kv, kv) << budget;
    if (p.kv == kv) {
      EXPECT_GE(now, stage) << budget;
      EXPECT_LE(p.max_seq_len, context) << budget;
    } else {
      EXPECT_EQ(stage, 4) << "all else was given up: " << budget;
    }
    EXPECT_TRUE(now <= 1 || p.max_seq_len <= 256u) << budget;
    EXPECT_TRUE(p.max_seq_len >= 256u || (now == 4 && p.kv == KvType::q4)) << budget;
    stage = now;
    kv = p.kv;
    context = p.max_seq_len;
    ++plans[static_cast<std::size_t>(kv)];
  }
  EXPECT_EQ(stage, 4);
  EXPECT_LT(context, 100u) << "down to the last positions";
  EXPECT_EQ(plans, (std::array<int, kKvNames.size()>{0, plans[1], plans[2], plans[3]}));
  for (const KvType type : {KvType::f16, KvType::q8, KvType::q4}) EXPECT_GT(plans[static_cast<std::size_t>(type)], 2);
}

/// Chunks, slots, sequences, and whether a file is mapped, change nothing of how keys and values are kept.
TEST(Plan, BudgetAndContextAloneDecideThePrecision) {
  const Sizes plain = sizes();
  Sizes mapped = sizes(), many = sizes();
  for (SegmentNeed& s : mapped.segments) s.bytes = s.vectors ? s.bytes : 0;
  many.sequences = 3;
  int plans = 0, refused = 0;
  std::set<KvType> seen;
  for (const std::uint32_t context : {0u, 100u, 700u}) {
    for (std::uint64_t budget = kMiB; budget < 8 * kMiB; budget += 31 * kKiB) {
      PlanInput in = input(plain, budget);
      in.max_seq_len = context;
      const Made alone = make(in);
      const auto check = [&](const PlanInput& other) {
        const Made made = make(other);
        if (!made.plan) {
          ++refused;
          return;
        }
        ++plans;
        ASSERT_TRUE(alone.plan || other.segments.data() == mapped.segments.data()) << budget;
        const KvType kv = alone.plan ? alone.plan->kv : KvType::q4;
        EXPECT_EQ(made.plan->kv, kv) << budget << " " << other.chunk << " " << other.ring_slots;
        EXPECT_LE(made.plan->total, budget);
        seen.insert(kv);
      };
      for (const std::uint32_t chunk : {0u, 1u, 7u, 128u}) {
        in.chunk = chunk;
        for (const std::uint32_t slots : {0u, 1u, 5u}) {
          in.ring_slots = slots;
          check(in);
        }
        in.ring_slots = 0;
        in.stream_all = true;
        check(in);
        in.stream_all = false;
        for (const Sizes* sizes : {&mapped, &many}) {
          PlanInput other = in;
          other.segments = sizes->segments;
          other.measure = {sizes, Sizes::bytes};
          other.sequences = sizes->sequences;
          check(other);
        }
      }
    }
  }
  EXPECT_GT(plans, 5000);
  EXPECT_GT(refused, 50);
  EXPECT_EQ(seen, (std::set<KvType>{KvType::f16, KvType::q8, KvType::k4v4, KvType::q4}));
}

/// More memory never shortens a context. It grows beyond a small part of the weights, and beyond 2,048, once all of
/// these stay, and then as far as it goes; what everything needs to stay comes before that.
TEST(Plan, WeightsComeBeforeALongerContext) {
  Sizes all = sizes();
  all.kv_per_position = {256, 128, 72, 48, 32};
  all.per_scored = kKiB;
  const std::uint64_t weights = 40 * 256 * kKiB + 8 * 4 * kKiB, position = 128 + 4;
  int streaming = 0, growing = 0, whole = 0;
  std::uint32_t before = 0;
  for (std::uint64_t budget = 3 * kMiB; budget < 40 * kMiB; budget += 97 * kKiB) {
    PlanInput in = input(all, budget);
    in.model_seq_len = 100'000;
    const Made made = make(in);
    ASSERT_TRUE(made.plan) << budget;
    const Plan& p = *made.plan;
    EXPECT_EQ(p.total, count(all, made)) << budget;
    EXPECT_LE(p.total, budget);
    EXPECT_EQ(p.kv, KvType::f16);
    EXPECT_GE(p.max_seq_len, before) << budget;
    before = p.max_seq_len;
    const auto share = std::min(2048u, static_cast<std::uint32_t>(std::min(weights, budget) / 16 / position) + 1);
    Plan least = p;  // with all weights, at the context that a part of them allows
    least.max_seq_len = 2048;
    ASSERT_GT(weights / 16 / position, 2048u);
    least.ring_slots = least.embedding_rows = 0;
    least.chunk = 32;
    least.scored_tokens = kFewestScored;
    EXPECT_EQ(p.ring_slots == 0, Sizes::bytes(&all, least) <= budget) << budget;
    if (p.ring_slots != 0) {
      EXPECT_EQ(p.max_seq_len, std::max(256u, share)) << budget;
      EXPECT_EQ(p.context_why, Why::weights);
      ++streaming;
    } else if (p.max_seq_len == in.model_seq_len) {
      EXPECT_EQ(p.context_why, Why::model);
      ++whole;
    } else {
      EXPECT_EQ(p.context_why, Why::budget);
      Plan more = p;
      ++more.max_seq_len;
      more.scored_tokens = kFewestScored;
      more.chunk = least.chunk;
      const std::uint64_t kept = 2 * ((budget - Sizes::bytes(&all, least)) / 32);  // for wider passes and for scores
      EXPECT_GT(Sizes::bytes(&all, more) + kept, budget) << "another position would have fitted";
      ++growing;
    }
  }
  EXPECT_GT(streaming, 20);
  EXPECT_GT(growing, 20);
  EXPECT_GT(whole, 20);
}

/// The context and whether weights are streamed, for models and budgets, worked out by hand. All weights are 10,272
/// KiB, and a session takes 1,024 KiB, 8 KiB for each of at least 32 columns, and 132 or 4,100 bytes for each position.
TEST(Plan, WeightsFirstThenTheContext) {
  struct Row {
    const char* name;
    bool small;           // 132 bytes
    std::uint32_t model;  // positions
    std::uint32_t asked;
    std::uint64_t budget;
    std::uint32_t context;
    bool streamed;
  };
  constexpr std::uint64_t kWhole = (10'272 + 1024 + 256) * kKiB + 2048 * 132;  // all weights and 2,048 positions
  constexpr Row kRows[] = {
      {"a 16th of the budget", true, 100'000, 0, 3 * kMiB, 1490, true},
      {"2,048 is less than a 16th", true, 100'000, 0, 8 * kMiB, 2048, true},
      {"a byte less than all weights need", true, 100'000, 0, kWhole - 1, 2048, true},
      {"all weights", true, 100'000, 0, kWhole, 2048, false},
      {"a position more, and two 32nds", true, 100'000, 0, kWhole + 143, 2049, false},
      {"as far as the budget goes", true, 100'000, 0, 24 * kMiB, 94'848, false},
      {"as far as the model's positions go", true, 100'000, 0, 64 * kMiB, 100'000, false},
      {"a model of fewer", true, 512, 0, 8 * kMiB, 512, true},
      {"and with all weights", true, 512, 0, 64 * kMiB, 512, false},
      {"large positions", false, 1024, 0, 12 * kMiB, 256, true},
      {"the same with all weights", false, 1024, 0, 12'577 * kKiB, 256, false},
      {"a wish comes before weights", true, 100'000, 8000, kWhole, 8000, true},
      {"and stays below what fits", true, 100'000, 300, 24 * kMiB, 300, false},
      {"and may be above the model's", true, 512, 3000, 24 * kMiB, 3000, false},
  };
  for (const Row& row : kRows) {
    Sizes all = sizes();
    if (row.small) all.kv_per_position = {256, 128, 72, 48, 32};
    PlanInput in = input(all, row.budget);
    in.model_seq_len = row.model;
    in.max_seq_len = row.asked;
    const Made made = make(in);
    ASSERT_TRUE(made.plan) << row.name;
    EXPECT_EQ(made.plan->max_seq_len, row.context) << row.name;
    EXPECT_EQ(made.plan->ring_slots != 0, row.streamed) << row.name;
    const Why why = row.asked != 0             ? Why::asked
                    : row.context == row.model ? Why::model
                    : row.streamed             ? Why::weights
                                               : Why::budget;
    EXPECT_EQ(made.plan->context_why, why) << row.name;
  }
}

/// What was asked for is told as such, and so is what was not and is not the model's own.
TEST(Plan, SaysWhy) {
  const Sizes all = sizes();
  PlanInput in = input(all, 64 * kMiB);
  EXPECT_EQ(make(in).plan->context_why, Why::model);
  EXPECT_EQ(make(in).plan->kv_why, Why::model);
  in.max_seq_len = 300;
  in.kv = static_cast<int>(KvType::q2);
  EXPECT_EQ(make(in).plan->context_why, Why::asked);
  EXPECT_EQ(make(in).plan->kv_why, Why::asked);
  EXPECT_EQ(make(in).plan->kv, KvType::q2);
  in = input(all, 2 * kMiB);
  const Plan coarse = *make(in).plan;
  EXPECT_EQ(coarse.kv_why, Why::budget);
  EXPECT_EQ(coarse.kv_positions, 256u);
  // With the budget that is named they are as fine as the weights.
  in.budget = Budget(coarse.finest_kv_budget);
  EXPECT_EQ(make(in).plan->kv, KvType::f16);
  in.budget = Budget(coarse.finest_kv_budget - 1);
  EXPECT_EQ(make(in).plan->kv, KvType::q8);
}

// Positions in f16 make the smallest caches larger, so that a long context decides for fewer bits with less loss.
TEST(Plan, ChoosesByLossWhatALongContextMakesSmaller) {
  const Sizes all = sizes();
  PlanInput in = input(all, 0);
  for (const auto& [context, wanted] : {std::pair{300u, std::vector{KvType::f16, KvType::q8, KvType::q4}},
                                        {700u, {KvType::f16, KvType::q8, KvType::k4v4, KvType::q4}},
                                        {3000u, {KvType::f16, KvType::q8, KvType::k8v4, KvType::k4v4}}}) {
    std::vector<KvType> chosen;
    in.max_seq_len = context;
    for (std::uint64_t bytes = 40 * kMiB;; bytes -= 16 * kKiB) {
      in.budget = Budget(bytes);
      if (!make(in).plan) break;
      const KvType kv = make(in).plan->kv;
      if (chosen.empty() || chosen.back() != kv) chosen.push_back(kv);
    }
    EXPECT_EQ(chosen, wanted) << context;
  }
}

// Groups of 32 take more than a byte for each of a few values: such heads stay at 8 bits.
TEST(Plan, TakesNoCoarserTypeThatIsLarger) {
  Sizes all = sizes();
  all.kv_per_position = {32, 16, 12, 20, 12};
  PlanInput in = input(all, 20 * kMiB);
  for (; make(in).plan; in.budget = Budget(in.budget.bytes() - 64 * kKiB)) {
    EXPECT_LE(make(in).plan->kv, KvType::q8) << in.budget.bytes();
  }
}

TEST(Plan, RefusalNamesABudgetThatDoes) {
  const Sizes all = sizes();
  int refused = 0, hinted = 0;
  for (const std::uint32_t context : {0u, 100u, 700u, 4000u}) {
    for (const std::uint32_t chunk : {0u, 1u, 128u, 500u}) {
      for (std::uint64_t budget = kMiB + 100 * kKiB; budget < 8 * kMiB; budget += 111 * kKiB) {
        PlanInput in = input(all, budget);
        in.max_seq_len = context;
        in.chunk = chunk;
        const Made made = make(in);
        if (made.plan) continue;
        ++refused;
        EXPECT_EQ(std::ranges::count(made.pinned, true), 0) << "a refusal pins nothing";
        const std::string sentence = made.plan.error().sentence;
        double needed = 0;
        ASSERT_EQ(std::sscanf(sentence.c_str(), "this model needs at least %lf MiB", &needed), 1) << sentence;
        in.budget = Budget(static_cast<std::uint64_t>(needed * kMiB));
        EXPECT_TRUE(make(in).plan) << sentence;
        in.budget = Budget(std::max(budget, static_cast<std::uint64_t>((needed - 0.02) * kMiB)));
        EXPECT_FALSE(make(in).plan) << sentence;
        // Where coarser keys and values would do, that is said.
        in.budget = Budget(budget);
        in.kv = static_cast<int>(KvType::q4);
        EXPECT_EQ(sentence.find("keys and values in ") != sentence.npos, static_cast<bool>(make(in).plan)) << sentence;
        hinted += make(in).plan ? 1 : 0;
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(hinted, 10);
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
    in.budget = Budget(plan.resident_budget);
    const Made enough = make(in);
    ASSERT_TRUE(enough.plan);
    EXPECT_EQ(enough.plan->ring_slots, 0u);
    EXPECT_DOUBLE_EQ(enough.plan->rate, plan.resident_rate);
    in.budget = Budget(plan.resident_budget - 1);
    const Made less = make(in);
    EXPECT_TRUE(less.plan && less.plan->ring_slots != 0);
  }
  EXPECT_GT(streaming, 10);
}

/// Also where the context is the plan's choice, which a larger budget makes longer.
TEST(Plan, TheBudgetThatHoldsEverythingDoes) {
  Sizes all = sizes();
  all.kv_per_position = {256, 128, 72, 48, 32};
  int streaming = 0;
  for (const std::uint32_t chunk : {0u, 7u}) {
    for (std::uint64_t budget = 1200 * kKiB; budget < 14 * kMiB; budget += 97 * kKiB) {
      PlanInput in = input(all, budget);
      in.model_seq_len = 100'000;
      in.chunk = chunk;
      const Made made = make(in);
      if (!made.plan || made.plan->ring_slots == 0) continue;
      ++streaming;
      in.budget = Budget(made.plan->resident_budget);
      EXPECT_EQ(make(in).plan->ring_slots, 0u) << budget;
      in.budget = Budget(made.plan->resident_budget - 1);
      EXPECT_NE(make(in).plan->ring_slots, 0u) << budget;
    }
  }
  EXPECT_GT(streaming, 50);
}

}  // namespace
}  // namespace qsf::test
