// Slots that keep what passes choose: how much of it is read again.
#include "stream/streamer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "file/open_file.h"
#include "file/small_file.h"

namespace qsf {
namespace {

constexpr std::uint32_t kLayers = 3, kOfLayer = 48;  // segments of experts

/// A mixture whose segments of experts are chosen from by layer; nothing else is used.
class Slots {
 public:
  explicit Slots(std::uint32_t n_slots, std::uint32_t ring = 2, bool aligned = false, Streamer::Checks checks = {}) {
    qsf::test::SmallOptions o;
    o.aligned = aligned;
    o.n_layers = kLayers;
    o.format = FormatId::q8;
    o.segment_bytes = 1 << 16;  // an expert's matrix each
    o.shape = [](std::uint32_t, LayerKind& k) {
      k.ffn = Ffn::mixture;
      k.n_experts = kOfLayer / 3;
      k.experts_used = 1;
      k.expert_dim = 48;
    };
    small_ = qsf::test::small_file(o);
    file_ = *qsf::test::open_file(small_.bytes);
    for (const TensorEntry& t : file_.tensors) {
      if (t.role < Role::expert_gate || t.role > Role::expert_down) continue;
      std::vector<std::uint32_t> run(t.n_segments);
      std::iota(run.begin(), run.end(), t.first_segment);
      layers_.resize(std::max<std::size_t>(layers_.size(), t.stage));
      auto& layer = layers_[t.stage - 1];
      layer.insert(layer.end(), run.begin(), run.end());
    }
    Plan plan;
    plan.ring_slots = ring;
    plan.expert_slots = n_slots;
    const FileTables tables{file_.header, file_.layers, file_.tensors, file_.segments};
    for (const auto& layer : layers_) {
      const auto begin = static_cast<std::uint32_t>(schedule_.size());
      schedule_.insert(schedule_.end(), layer.begin(), layer.end());
      chosen_.push_back({begin, static_cast<std::uint32_t>(schedule_.size())});
      for (const std::uint32_t s : layer) plan.slot_bytes = std::max(plan.slot_bytes, segment_buffer_bytes(tables, s));
    }
    plan.slot_bytes = plan.expert_slot_bytes = align_up(plan.slot_bytes);
    pinned_.reset(new bool[file_.segments.size()]());
    const std::span<const bool> pinned(pinned_.get(), file_.segments.size());
    EXPECT_TRUE(streamer_.init(arena_, tables, plan, pinned, schedule_, chosen_, checks));
  }

  const std::vector<std::uint32_t>& layer(std::uint32_t i) const { return layers_[i]; }
  Streamer& streamer() { return streamer_; }
  void begin_pass() {
    const ScheduleRange whole{0, static_cast<std::uint32_t>(schedule_.size())};
    streamer_.begin_pass(std::span(&whole, 1));
  }
  /// Chooses and uses these of a layer, in this order; gives how many were there at once.
  std::size_t use(std::uint32_t layer, std::span<const std::uint32_t> segments) {
    std::size_t found = 0;
    streamer_.begin_choice(chosen_[layer].begin);
    for (const std::uint32_t s : segments) found += streamer_.choose(s) != Streamer::Residency::absent ? 1 : 0;
    streamer_.end_choice();
    for (const std::uint32_t s : segments) {
      const std::byte* at = streamer_.acquire(s);
      for (; at == nullptr; at = streamer_.acquire(s)) serve();
      EXPECT_EQ(std::memcmp(at, file_.raw[s].data(), file_.raw[s].size()), 0) << s;
      streamer_.release(s);
      serve();
    }
    return found;
  }
  /// Reads a segment with a wrong byte, and returns whether that is found.
  bool finds_damage(std::uint32_t segment) {
    EXPECT_EQ(streamer_.acquire(segment), nullptr);
    bool found = false;
    while (const auto r = streamer_.next_request()) {
      std::memcpy(r->into, small_.bytes.data() + r->offset, r->size);
      if (r->ticket == segment) r->into[r->size / 2] ^= std::byte{1};
      const Status status = streamer_.complete(r->ticket);
      found = found || (!status && status.error().code == ErrorCode::bad_checksum);
    }
    return found;
  }
  void serve() {
    while (const auto r = streamer_.next_request()) {
      ++reads[r->ticket];
      if (r->blocks) fill_blocks(*r);
      std::memcpy(r->into, small_.bytes.data() + r->offset, r->size);
      ASSERT_TRUE(streamer_.complete(r->ticket));
    }
  }
  bool is_content(std::uint32_t segment, const std::byte* at) const {
    return std::memcmp(at, file_.raw[segment].data(), file_.raw[segment].size()) == 0;
  }
  std::size_t all_reads() const {
    return std::accumulate(reads.begin(), reads.end(), std::size_t{0},
                           [](std::size_t sum, const auto& one) { return sum + one.second; });
  }

  std::map<std::uint32_t, std::size_t> reads;  // by segment
  std::size_t in_place = 0;

 private:
  /// As reading whole blocks does: bytes round those that are asked for.
  void fill_blocks(const ReadRequest& r) {
    const auto begin = reinterpret_cast<std::uintptr_t>(r.into), before = begin % kBlock;
    EXPECT_EQ((r.offset - begin) % kBlock, 0u);
    std::byte* const blocks = r.into - before;
    const std::size_t n = align_up(before + r.size, kBlock);
    ASSERT_GE(blocks, memory_.data());
    ASSERT_LE(blocks + n, memory_.data() + memory_.size());
    std::memset(blocks, 0x5a, n);
    ++in_place;
  }

  qsf::test::SmallFile small_;
  qsf::test::OpenFile file_;
  std::vector<std::vector<std::uint32_t>> layers_;
  std::vector<std::uint32_t> schedule_;
  std::vector<ScheduleRange> chosen_;
  std::unique_ptr<bool[]> pinned_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4 << 20);
  Arena arena_{memory_};
  Streamer streamer_;
};

/// All of each layer, pass after pass: a least-recently-used cache that is smaller would find nothing. As much is found
/// as there are slots, which the layers share evenly.
TEST(Streamer, WhatIsUsedInTurnIsFoundInProportionToSlots) {
  for (const std::uint32_t n : {0u, 1u, 7u, 30u, 72u, 101u, 143u, 144u}) {
    Slots slots(n);
    for (int pass = 0; pass < 4; ++pass) {
      slots.begin_pass();
      slots.reads.clear();
      std::size_t found = 0;
      for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
        const std::size_t of_layer = slots.use(layer, slots.layer(layer));
        if (pass > 0) {
          EXPECT_NEAR(static_cast<double>(of_layer), n / 3.0, 0.999) << n;
        }
        found += of_layer;
      }
      EXPECT_EQ(found, pass == 0 ? 0 : n);
      EXPECT_EQ(slots.all_reads(), kLayers * kOfLayer - found) << n;
      for (const auto& [segment, times] : slots.reads) EXPECT_EQ(times, 1u) << segment;
    }
  }
}

TEST(Streamer, ATicketThatIsNotUnderWayIsRefused) {
  Slots slots(4);
  slots.begin_pass();
  Streamer& streamer = slots.streamer();
  const std::uint32_t segment = slots.layer(0)[0];
  const auto refuses = [&](std::uint32_t ticket) {
    const Status status = streamer.complete(ticket);
    return !status && status.error().code == ErrorCode::bad_argument;
  };
  EXPECT_TRUE(refuses(segment) && refuses(0xFFFFFFFF)) << "nothing was asked for";
  slots.use(0, std::span(&segment, 1));
  EXPECT_TRUE(refuses(segment)) << "it is there already";
  streamer.fail(segment, make_error(ErrorCode::io_error, "late"));
  EXPECT_EQ(slots.use(0, std::span(&segment, 1)), 1u) << "a failure that is not of a read changes nothing";
  EXPECT_FALSE(streamer.failed());
}

// A segment is checked when it is first read, and each time only if that is asked for.
TEST(Streamer, ChecksumsAreComparedOnceOrEachTime) {
  for (const bool each_time : {false, true}) {
    Slots slots(0, 2, false, {.recheck = each_time});
    slots.begin_pass();
    const std::uint32_t segment = slots.layer(0)[0], other = slots.layer(0)[1];
    slots.use(0, std::span(&segment, 1));
    EXPECT_EQ(slots.finds_damage(segment), each_time);
    EXPECT_TRUE(slots.finds_damage(other));
  }
}

/// A slot of whole blocks is a segment's alone, in the ring as among those that keep what was chosen.
TEST(Streamer, BlocksOfAlignedFilesAreNobodyElses) {
  for (const std::uint32_t ring : {1u, 2u, 7u}) {
    for (const std::uint32_t n : {0u, 7u, 72u, 144u}) {
      for (const bool aligned : {false, true}) {
        Slots slots(n, ring, aligned);
        for (int pass = 0; pass < 3; ++pass) {
          slots.begin_pass();
          for (std::uint32_t layer = 0; layer < kLayers; ++layer) slots.use(layer, slots.layer(layer));
        }
        EXPECT_EQ(slots.in_place, aligned ? slots.all_reads() : 0u);
      }
    }
  }
}

/// What was used longest ago gives way, to what is not there.
TEST(Streamer, WhatWasUsedLastStays) {
  Slots slots(3 * 4);
  const std::vector<std::uint32_t>& all = slots.layer(1);
  const auto use = [&](std::initializer_list<std::size_t> which) {
    std::vector<std::uint32_t> segments;
    for (const std::size_t i : which) segments.push_back(all[i]);
    slots.begin_pass();
    return slots.use(1, segments);
  };
  EXPECT_EQ(use({0, 1}), 0u);
  EXPECT_EQ(use({2, 3}), 0u);
  EXPECT_EQ(use({0, 1, 2, 3}), 4u);
  EXPECT_EQ(use({0, 1}), 2u);
  EXPECT_EQ(use({8, 9}), 0u);  // in place of 2 and 3
  EXPECT_EQ(use({0, 1, 8, 9}), 4u);
  EXPECT_EQ(use({2}), 0u);
}

/// While a segment is held, nothing takes its memory: neither a segment that is asked for, of which the ring holds one
/// alone, nor those of the next selection, for which its layer has one slot.
TEST(Streamer, WhatIsHeldStays) {
  for (const std::uint32_t n_slots : {0u, 3u}) {
    Slots slots(n_slots, 1);
    const std::vector<std::uint32_t>& layer = slots.layer(0);
    slots.begin_pass();
    const auto choose = [&](std::span<const std::uint32_t> segments) {
      slots.streamer().begin_choice(0);
      for (const std::uint32_t s : segments) (void)slots.streamer().choose(s);
      slots.streamer().end_choice();
    };
    choose(std::span(layer).first(1));
    const std::byte* at = nullptr;
    while ((at = slots.streamer().acquire(layer[0])) == nullptr) slots.serve();
    ASSERT_TRUE(slots.is_content(layer[0], at));
    slots.begin_pass();
    choose(std::span(layer).subspan(1, 8));
    for (const std::uint32_t s : std::span(layer).subspan(1, 8)) {
      EXPECT_EQ(slots.streamer().acquire(s) != nullptr, false) << n_slots;
      slots.serve();
      EXPECT_TRUE(slots.is_content(layer[0], at)) << n_slots;
    }
    EXPECT_NE(slots.streamer().residency(layer[0]), Streamer::Residency::absent);
  }
}

/// In any order, also from the last to the first: each is read once, and what is missing is asked for at once.
TEST(Streamer, ChosenSegmentsAreUsedInAnyOrder) {
  for (const std::uint32_t ring : {1u, 2u, 5u}) {
    for (const std::uint32_t n : {0u, 9u, 60u}) {
      Slots slots(n, ring);
      std::vector<std::uint32_t> order = slots.layer(0);
      for (int pass = 0; pass < 6; ++pass) {
        slots.begin_pass();
        slots.reads.clear();
        std::size_t found = 0;
        slots.streamer().begin_choice(0);
        for (const std::uint32_t s : slots.layer(0)) {
          found += slots.streamer().choose(s) != Streamer::Residency::absent ? 1 : 0;
        }
        slots.streamer().end_choice();
        std::vector<std::uint32_t> left = order;
        while (!left.empty()) {  // what is there, in the order of the pass; else the first or the last
          const auto there = std::ranges::find_if(
              left, [&](std::uint32_t s) { return slots.streamer().residency(s) != Streamer::Residency::absent; });
          const auto other = pass % 2 == 0 ? std::ranges::min_element(left) : std::ranges::max_element(left);
          const auto next = there == left.end() ? other : there;
          if (slots.streamer().acquire(*next) == nullptr) {
            slots.serve();
            continue;
          }
          slots.streamer().release(*next);
          left.erase(next);
        }
        EXPECT_EQ(found, pass == 0 ? 0 : n / 3) << ring;
        EXPECT_EQ(slots.all_reads(), kOfLayer - found) << n;
        for (const auto& [segment, times] : slots.reads) EXPECT_EQ(times, 1u) << segment;
        std::ranges::rotate(order, order.begin() + 5);
        std::ranges::reverse(order);
      }
    }
  }
}

/// Whatever is missing of a layer is under way before the first of it is needed.
TEST(Streamer, MissesAreAskedForTogether) {
  Slots slots(3 * 12);
  slots.begin_pass();
  slots.streamer().begin_choice(0);
  const auto wanted = std::span(slots.layer(0)).first(9);
  for (const std::uint32_t s : wanted) EXPECT_EQ(slots.streamer().choose(s), Streamer::Residency::absent);
  slots.streamer().end_choice();
  EXPECT_EQ(slots.streamer().acquire(wanted[0]), nullptr);
  std::set<std::uint32_t> asked;
  while (const auto r = slots.streamer().next_request()) asked.insert(r->ticket);
  EXPECT_EQ(asked, std::set<std::uint32_t>(wanted.begin(), wanted.end()));
}

}  // namespace
}  // namespace qsf
