// What is read ahead through the ring, and what gives way to a look-up.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "file/open_file.h"
#include "file/small_file.h"
#include "stream/streamer.h"

namespace qsf {
namespace {

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
