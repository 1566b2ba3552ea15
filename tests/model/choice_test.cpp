// The choice of positions by attention, on attention that is made up, and the fate of a needle under each policy.
#include "model/choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include "engine/reference_policy.h"
#include "model/sequence_memory.h"

namespace qsf::test {
namespace {

/// Keys and values of a memory, which are the positions' own numbers, and attention to them.
class MadeUp {
 public:
  using Weight = std::function<double(std::uint32_t head, std::uint32_t query, std::uint32_t position)>;

  MadeUp(KvChoice choice, std::uint32_t capacity, std::uint32_t query_heads)
      : memory_(std::size_t{2} * kHeads * capacity * sizeof(std::uint32_t)),
        sums_(std::size_t{kHeads} * capacity),
        query_heads_(query_heads) {
    memory_ = {.data = memory_.data(),
               .n_heads = kHeads,
               .capacity = capacity,
               .window = capacity - capacity / 2,
               .first_kept = capacity / 2,
               .key_bytes = sizeof(std::uint32_t),
               .value_bytes = sizeof(std::uint32_t),
               .choice = choice,
               .sums = sums_.data()};
  }

  /// Feeds the position `next`, whose query heads weigh as `weight` says.
  void feed(const Weight& weight) {
    const std::uint32_t position = next_++;
    for (std::uint32_t head = 0; head < kHeads; ++head) {
      make_room(memory_, head, position);
      for (std::byte* at : {memory_.key(head, position), memory_.value(head, position)}) {
        std::memcpy(at, &position, sizeof position);
      }
      AttendArgs args{};
      args.n_heads = query_heads_;
      args.n_positions = 1;
      args.capacity = memory_.capacity;
      const bool in_turn = memory_.choice == KvChoice::h2o;
      args.position = in_turn || position < memory_.capacity ? position : memory_.slot(position);
      args.window = in_turn ? memory_.window : memory_.capacity;
      args.first_kept = in_turn ? memory_.first_kept : 0;
      const std::vector<std::uint32_t> seen = positions(head, position, args.n_seen(0));
      std::vector<float> scores;
      for (std::uint32_t q = 0; q < query_heads_; ++q) {
        for (const std::uint32_t at : seen) {
          scores.push_back(static_cast<float>(weight(head * query_heads_ + q, position, at)));
        }
        scores.resize((q + 1) * args.most_seen());
      }
      args.scores = scores.data();
      add_weights(memory_, head, position, args);
    }
  }

  /// Returns the positions that the last token saw, ascending.
  std::vector<std::size_t> kept(std::uint32_t head) const {
    const std::uint32_t last = next_ - 1;
    const bool whole = memory_.choice == KvChoice::h2o && last >= memory_.capacity;
    const std::vector<std::uint32_t> seen = positions(head, last, whole ? memory_.capacity : memory_.slot(last) + 1);
    std::set<std::size_t> out(seen.begin(), seen.end());
    EXPECT_EQ(out.size(), seen.size());
    return {out.begin(), out.end()};
  }

 private:
  static constexpr std::uint32_t kHeads = 2;

  /// Returns the numbers in the first n slots, those in turn from the oldest on.
  std::vector<std::uint32_t> positions(std::uint32_t head, std::uint32_t last, std::uint32_t n) const {
    std::vector<std::uint32_t> out;
    for (std::uint32_t i = 0; i < n; ++i) {
      const bool turns = memory_.choice == KvChoice::h2o && last >= memory_.capacity && i >= memory_.first_kept;
      const std::uint32_t slot = turns ? memory_.slot(last + 1 - n + i) : i;
      std::uint32_t key = 0, value = 0;
      std::memcpy(&key, memory_.keys(head) + slot * memory_.key_bytes, sizeof key);
      std::memcpy(&value, memory_.values(head) + slot * memory_.value_bytes, sizeof value);
      EXPECT_EQ(key, value) << "they move together";
      out.push_back(key);
    }
    return out;
  }

  std::vector<std::byte> memory_;
  std::vector<double> sums_;
  KvMemory memory_;
  std::uint32_t query_heads_, next_ = 0;
};

/// A weight of few bits, so that sums are exact. Positions differ much in the weight that they get from all queries, so
/// that later ones take the places of earlier ones.
double any_weight(std::uint32_t head, std::uint32_t query, std::uint32_t position) {
  const std::uint32_t popular = (position + 7 * head) * 2654435761u >> 29;
  const std::uint32_t mixed = (query * 2654435761u) ^ ((position + 77 * head) * 40503u);
  return std::ldexp(static_cast<double>((mixed >> 7) % 1024), -10 - 2 * static_cast<int>(popular));
}

TEST(Choice, KeepsThePositionsOfTheFormulas) {
  for (const std::uint32_t capacity : {16u, 17u, 40u, 200u}) {
    for (const KvChoice choice : {KvChoice::h2o, KvChoice::snapkv}) {
      constexpr std::uint32_t kQueryHeads = 3;
      MadeUp memory(choice, capacity, kQueryHeads);
      const ReferencePolicy policy{capacity, 0, static_cast<std::uint32_t>(choice)};
      std::vector<ReferenceKept> expected(2, ReferenceKept(policy));
      for (std::uint32_t position = 0; position < 10 * capacity; ++position) {
        memory.feed(any_weight);
        for (std::uint32_t head = 0; head < 2; ++head) {
          const std::vector<std::size_t> seen = expected[head].next(position);
          ASSERT_EQ(memory.kept(head), seen) << capacity << " at " << position;
          for (std::uint32_t q = 0; q < kQueryHeads; ++q) {
            std::vector<double> weights;
            for (const std::size_t at : seen) {
              weights.push_back(any_weight(head * kQueryHeads + q, position, static_cast<std::uint32_t>(at)));
            }
            expected[head].weigh(weights);
          }
        }
      }
    }
  }
}

// By hand: 16 positions, of which 8 are the last ones.
TEST(Choice, H2OKeepsTheLargestSums) {
  MadeUp memory(KvChoice::h2o, 16, 1);
  // Every query attends to odd positions only.
  const auto weight = [](std::uint32_t, std::uint32_t, std::uint32_t position) {
    return position % 2 == 0 ? 0.0 : position < 8 ? 0.25 : 1.0;
  };
  for (int i = 0; i < 24; ++i) memory.feed(weight);
  // 8 to 15 have left the last ones, and of 0 to 15 the even ones had to go.
  const std::vector<std::size_t> kept = memory.kept(0);
  EXPECT_EQ(kept, (std::vector<std::size_t>{1, 3, 5, 7, 9, 11, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
}

// The earlier of equal ones stay.
TEST(Choice, WithoutAttentionKeepsTheFirst) {
  const auto none = [](std::uint32_t, std::uint32_t, std::uint32_t) { return 0.0; };
  MadeUp sums(KvChoice::h2o, 16, 1), window(KvChoice::snapkv, 16, 1);
  for (int i = 0; i < 100; ++i) sums.feed(none);
  EXPECT_EQ(sums.kept(0), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 92, 93, 94, 95, 96, 97, 98, 99}));
  for (int i = 0; i < 17; ++i) window.feed(none);
  EXPECT_EQ(window.kept(0), (std::vector<std::size_t>{0, 1, 2, 3, 12, 13, 14, 15, 16}));
}

// By hand: of 16 positions the last 4 observe, and 4 of the other 12 stay.
TEST(Choice, SnapKvKeepsNeighboursOfAttendedPositions) {
  MadeUp memory(KvChoice::snapkv, 16, 1);
  const auto weight = [](std::uint32_t, std::uint32_t query, std::uint32_t position) {
    if (query < 12) return position == 2 ? 1.0 : 0.0;  // before the window, where it does not count
    return position == 9 ? 1.0 : position == 11 ? 0.5 : 0.0;
  };
  for (int i = 0; i < 17; ++i) memory.feed(weight);
  // The pools of 8 to 11 have both: 9 and 11 are at most 3 away. Those of 6 and 7 have one, and those of 12 on observe.
  EXPECT_EQ(memory.kept(1), (std::vector<std::size_t>{8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

/// Every query attends to the needle, or none does.
TEST(Choice, KeepsANeedleThatAttentionSees) {
  constexpr std::uint32_t kNeedle = 23, kCapacity = 32;
  const auto sees_needle = [](std::uint32_t, std::uint32_t query, std::uint32_t position) {
    return position == kNeedle ? 0.5 : any_weight(0, query, position) / 64;
  };
  const auto overlooks_it = [](std::uint32_t, std::uint32_t query, std::uint32_t position) {
    return position == kNeedle ? 0.0 : any_weight(0, query, position) / 64;
  };
  const auto has_needle = [](const std::vector<std::size_t>& kept) {
    return std::ranges::find(kept, std::size_t{kNeedle}) != kept.end();
  };
  for (const KvChoice choice : {KvChoice::h2o, KvChoice::snapkv}) {
    MadeUp seen(choice, kCapacity, 2), overlooked(choice, kCapacity, 2);
    for (std::uint32_t i = 0; i < 10 * kCapacity; ++i) {
      seen.feed(sees_needle);
      overlooked.feed(overlooks_it);
    }
    EXPECT_TRUE(has_needle(seen.kept(0)) && has_needle(seen.kept(1)));
    EXPECT_FALSE(choice == KvChoice::h2o && has_needle(overlooked.kept(0)));
  }
  for (const ReferencePolicy& policy : {ReferencePolicy{kCapacity}, ReferencePolicy{kCapacity - 4, 4}}) {
    ReferenceKept kept(policy);
    std::vector<std::size_t> last;
    for (std::uint32_t i = 0; i < 10 * kCapacity; ++i) last = kept.next(i);
    EXPECT_FALSE(has_needle(last)) << "a window and sinks forget it, however much attends to it";
  }
}

}  // namespace
}  // namespace qsf::test
