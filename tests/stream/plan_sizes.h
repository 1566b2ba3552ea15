// What a plan is made of in its tests: sizes that are counted by hand.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "qsf/formats/kv.h"
#include "stream/plan.h"

namespace qsf::test {

inline constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

/// 40 matrices of 256 KiB and 8 small vectors, in order of use.
inline std::vector<SegmentNeed> segments() {
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
  std::array<std::uint64_t, kKvNames.size()> kv_per_position{8 * kKiB,       4 * kKiB,   2 * kKiB + 64, kKiB + 256,
                                                             kKiB / 2 + 256, kKiB + 640, kKiB + 128};
  std::uint64_t exact_positions = 83 * 4 * kKiB;  // what rotated types add to a sequence
  std::uint64_t per_position = 4, per_column = 8 * kKiB, embedding_row = kKiB, per_scored = 0;
  std::uint32_t sequences = 1;
  std::vector<SegmentNeed> segments;

  std::uint64_t without_weights(const Plan& p) const {
    const std::uint64_t exact = forms_of(p.kv).rotates() ? sequences * exact_positions : 0;
    return fixed + exact +
           sequences * p.max_seq_len * (per_position + kv_per_position[static_cast<std::size_t>(p.kv)]) +
           p.chunk * per_column + p.embedding_rows * embedding_row + p.scored_tokens * per_scored;
  }
  static std::uint64_t slots(const Plan& p) {
    const std::uint64_t table = (p.expert_slots * 24 + 63) / 64 * 64;
    return p.ring_slots * p.slot_bytes + p.expert_slots * p.expert_slot_bytes + table;
  }
  static std::uint64_t bytes(const void* context, const Plan& p) {
    const Sizes& sizes = *static_cast<const Sizes*>(context);
    std::uint64_t total = sizes.without_weights(p) + slots(p);
    for (const SegmentNeed& s : sizes.segments) total += p.ring_slots == 0 || s.vectors ? s.bytes : 0;
    return total;
  }
};

/// The bytes of the smallest session, whose one slot holds the largest segment; a mapped file changes nothing of it.
inline std::uint64_t plain_bytes(const void* context, const Plan& p) {
  Plan plain = p;
  plain.slot_bytes = 256 * kKiB;
  return Sizes::bytes(context, plain);
}

inline PlanInput input(const Sizes& sizes, std::uint64_t budget) {
  PlanInput in;
  in.budget = Budget(budget);
  in.segments = sizes.segments;
  in.measure = {&sizes, Sizes::bytes};
  in.plain = {&sizes, plain_bytes};
  in.model_seq_len = 1024;
  return in;
}
inline Sizes sizes() {
  Sizes sizes;
  sizes.segments = segments();
  return sizes;
}

struct Made {
  Result<Plan> plan;
  std::vector<bool> pinned;
};
inline Made make(const PlanInput& in) {
  std::unique_ptr<bool[]> pinned(new bool[in.segments.size()]());
  Result<Plan> plan = make_plan(in, {pinned.get(), in.segments.size()});
  return {plan, std::vector<bool>(pinned.get(), pinned.get() + in.segments.size())};
}

/// The plan's bytes counted anew from what it says.
inline std::uint64_t count(const Sizes& sizes, const Made& made) {
  const Plan& p = *made.plan;
  std::uint64_t total = sizes.without_weights(p) + Sizes::slots(p);
  for (std::size_t i = 0; i < sizes.segments.size(); ++i) total += made.pinned[i] ? sizes.segments[i].bytes : 0;
  return total;
}

}  // namespace qsf::test
