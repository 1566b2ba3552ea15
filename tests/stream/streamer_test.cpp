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

/// A model of 8 layers whose q and o matrices are a segment each, of the same size. `in_turn` of them are in the
/// schedule, the last `again` of these twice; the others are looked up.
class Equals {
 public:
  Equals(std::uint32_t in_turn, std::uint32_t ring, bool pins, std::uint32_t again = 0,
         std::span<const ScheduleRange> chosen = {}) {
    qsf::test::SmallOptions o;
    o.n_layers = 8;
    o.segment_bytes = 1 << 16;
    small_ = qsf::test::small_file(o);
    file_ = *qsf::test::open_file(small_.bytes);
    for (const TensorEntry& t : file_.tensors) {
      if (t.role == Role::ffn_gate) wide = t.first_segment;
      if (t.role != Role::attn_q && t.role != Role::attn_o) continue;
      EXPECT_EQ(t.n_segments, 1u);
      all.push_back(t.first_segment);
    }
    const FileTables tables{file_.header, file_.layers, file_.tensors, file_.segments};
    schedule.assign(all.begin(), all.begin() + in_turn);
    schedule.insert(schedule.end(), all.begin() + in_turn - again, all.begin() + in_turn);
    pinned_.reset(new bool[file_.segments.size()]());
    for (const std::uint32_t s : schedule) pinned_[s] = pins;
    Plan plan;
    plan.ring_slots = ring;
    plan.slot_bytes = align_up(segment_buffer_bytes(tables, all[0]));
    const std::span<const bool> pinned(pinned_.get(), file_.segments.size());
    EXPECT_TRUE(streamer.init(arena_, tables, plan, pinned, schedule, chosen, {}));
    begin_pass();
  }
  void begin_pass() {
    const ScheduleRange whole{0, static_cast<std::uint32_t>(schedule.size())};
    streamer.begin_pass(std::span(&whole, 1));
  }
  void answer(const ReadRequest& r) {
    std::memcpy(r.into, small_.bytes.data() + r.offset, r.size);
    ASSERT_TRUE(streamer.complete(r.ticket));
  }
  void serve() {
    while (const auto r = streamer.next_request()) answer(*r);
  }
  void use(std::uint32_t segment) {
    while (streamer.acquire(segment) == nullptr) serve();
    streamer.release(segment);
    serve();
  }
  bool is_there(std::size_t i) const { return streamer.residency(all[i]) != Streamer::Residency::absent; }

  std::vector<std::uint32_t> all;  // segments
  std::uint32_t wide = 0;          // one that is wider than these, and not in turn
  std::vector<std::uint32_t> schedule;
  Streamer streamer;

 private:
  qsf::test::SmallFile small_;
  qsf::test::OpenFile file_;
  std::unique_ptr<bool[]> pinned_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(4 << 20);
  Arena arena_{memory_};
};

/// A look-up takes the place of the segment whose next use is latest, in this pass or in the next, and never of the one
/// that is held.
TEST(Streamer, ALookUpTakesThePlaceOfWhatIsUsedLast) {
  constexpr std::uint32_t kInTurn = 8;
  for (std::uint32_t held = 0; held < kInTurn; ++held) {
    Equals equals(kInTurn, 4, false);
    for (std::uint32_t i = 0; i < held; ++i) equals.use(equals.all[i]);
    while (equals.streamer.acquire(equals.all[held]) == nullptr) equals.serve();
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(equals.is_there((held + i) % kInTurn)) << held;
    std::size_t left = 4;
    for (std::uint32_t look_up = kInTurn; look_up < kInTurn + 3; ++look_up) {
      EXPECT_EQ(equals.streamer.acquire(equals.all[look_up], Streamer::Use::lookup), nullptr);
      --left;  // the requests are not answered, so that each takes a place of its own
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(equals.is_there((held + i) % kInTurn), i < left) << held;
    }
    EXPECT_EQ(equals.streamer.acquire(equals.all[kInTurn + 3], Streamer::Use::lookup), nullptr);
    EXPECT_TRUE(equals.is_there(held));
  }
}

/// A segment that needs the room of several takes it once all of them are read: meanwhile nothing else is asked for,
/// which would take the room of the first ones again.
TEST(Streamer, WhatWaitsForRoomIsReadNext) {
  Equals equals(8, 2, false);
  std::vector<ReadRequest> under_way;
  while (const auto r = equals.streamer.next_request()) under_way.push_back(*r);
  ASSERT_EQ(under_way.size(), 2u);
  EXPECT_EQ(equals.streamer.acquire(equals.wide, Streamer::Use::lookup), nullptr);
  ASSERT_FALSE(equals.streamer.next_request());
  equals.answer(under_way[0]);
  EXPECT_EQ(equals.streamer.acquire(equals.wide, Streamer::Use::lookup), nullptr);
  EXPECT_FALSE(equals.is_there(0));
  ASSERT_FALSE(equals.streamer.next_request());
  equals.answer(under_way[1]);
  EXPECT_EQ(equals.streamer.acquire(equals.wide, Streamer::Use::lookup), nullptr);
  const auto asked = equals.streamer.next_request();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->ticket, equals.wide);
  equals.answer(*asked);
  EXPECT_NE(equals.streamer.acquire(equals.wide, Streamer::Use::lookup), nullptr);
  equals.streamer.release(equals.wide);
  equals.use(equals.all[0]);  // what follows is read as before
  EXPECT_TRUE(equals.is_there(1));
}

/// What a pass uses twice is near its second use after its first: a look-up takes the place of others first.
TEST(Streamer, ALookUpLeavesWhatIsUsedASecondTimeSoon) {
  Equals equals(8, 4, false, 2);
  for (std::uint32_t i = 0; i < 7; ++i) equals.use(equals.all[i]);
  while (equals.streamer.acquire(equals.all[7]) == nullptr) equals.serve();
  for (const std::size_t i : {7u, 6u, 0u, 1u}) ASSERT_TRUE(equals.is_there(i)) << i;
  std::uint32_t look_up = 8;
  for (const std::size_t gone : {1u, 0u, 6u}) {
    EXPECT_TRUE(equals.is_there(gone));
    EXPECT_EQ(equals.streamer.acquire(equals.all[look_up++], Streamer::Use::lookup), nullptr);
    EXPECT_FALSE(equals.is_there(gone)) << gone;
  }
}

/// Also within and after the run that a pass uses twice, the next segments are there before they are needed.
TEST(Streamer, ASecondUseIsReadAheadLikeTheFirst) {
  Equals equals(8, 4, false, 3);
  const std::size_t n = equals.schedule.size();
  for (int pass = 0; pass < 2; ++pass) {
    equals.begin_pass();
    for (std::size_t at = 0; at < n; ++at) {
      equals.use(equals.schedule[at]);
      for (std::size_t ahead = 1; ahead <= 3; ++ahead) {
        const std::uint32_t next = equals.schedule[(at + ahead) % n];
        EXPECT_NE(equals.streamer.residency(next), Streamer::Residency::absent) << at << " " << ahead;
      }
    }
  }
}

/// Reading ahead into the next pass ends at its first selection, whose segments need the ring.
TEST(Streamer, NothingAfterTheNextSelectionIsReadAhead) {
  constexpr ScheduleRange kChosen{3, 5};
  Equals equals(8, 8, false, 0, std::span(&kChosen, 1));
  for (std::uint32_t i = 0; i < 3; ++i) equals.use(equals.all[i]);
  for (std::size_t i = 3; i < 8; ++i) EXPECT_FALSE(equals.is_there(i)) << i;
  equals.streamer.begin_choice(kChosen.begin);
  (void)equals.streamer.choose(equals.all[3]);
  equals.streamer.end_choice();
  equals.use(equals.all[3]);
  for (const std::size_t i : {5u, 6u, 7u}) EXPECT_TRUE(equals.is_there(i)) << i;
  for (std::uint32_t i = 5; i < 8; ++i) equals.use(equals.all[i]);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(equals.is_there(i), i < 3) << i;
}

/// After recover(), pinned segments that could not be read are read ahead again, before they are needed.
TEST(Streamer, PinnedSegmentsThatFailedAreReadAheadAgain) {
  Equals equals(6, 1, true);
  std::vector<std::uint32_t> asked;
  while (const auto r = equals.streamer.next_request()) {
    asked.push_back(r->ticket);
    if (r->ticket == equals.all[1]) {
      equals.streamer.fail(r->ticket, make_error(ErrorCode::io_error, "gone"));
    } else {
      equals.answer(*r);
    }
  }
  EXPECT_EQ(asked, std::vector<std::uint32_t>(equals.all.begin(), equals.all.begin() + 6));
  EXPECT_EQ(equals.streamer.acquire(equals.all[1]), nullptr);
  EXPECT_TRUE(equals.streamer.failed());
  equals.streamer.recover();
  const auto again = equals.streamer.next_request();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ticket, equals.all[1]);
  equals.answer(*again);
  EXPECT_NE(equals.streamer.acquire(equals.all[1]), nullptr);
}

/// However often reads fail, as much is read ahead as at first, and error() is the first since recover().
TEST(Streamer, FailuresLeaveNothingBehindAfterRecover) {
  Equals equals(6, 1, true);
  for (const char* const reason : {"first", "second", "third", "fourth"}) {
    std::vector<std::uint32_t> asked;
    while (const auto r = equals.streamer.next_request()) {
      asked.push_back(r->ticket);
      equals.streamer.fail(r->ticket, make_error(ErrorCode::io_error, "{}", asked.size() == 1 ? reason : "later"));
    }
    EXPECT_EQ(asked, equals.schedule) << reason;
    EXPECT_EQ(equals.streamer.acquire(equals.all[2]), nullptr);
    ASSERT_TRUE(equals.streamer.failed());
    EXPECT_STREQ(equals.streamer.error().sentence, reason);
    equals.streamer.recover();
    EXPECT_FALSE(equals.streamer.failed());
  }
}

/// A read that was under way at recover(), and fails after it, is no failure of the time since: it is repeated.
TEST(Streamer, AFailureFromBeforeRecoverIsForgotten) {
  Equals equals(6, 2, false);
  EXPECT_EQ(equals.streamer.acquire(equals.all[0]), nullptr);
  const auto late = equals.streamer.next_request();
  ASSERT_TRUE(late);
  equals.streamer.recover();
  equals.streamer.fail(late->ticket, make_error(ErrorCode::io_error, "gone"));
  EXPECT_EQ(equals.streamer.acquire(equals.all[0]), nullptr);
  EXPECT_FALSE(equals.streamer.failed());
  const auto again = equals.streamer.next_request();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ticket, equals.all[0]);
  equals.answer(*again);
  EXPECT_NE(equals.streamer.acquire(equals.all[0]), nullptr);
}

}  // namespace
}  // namespace qsf
