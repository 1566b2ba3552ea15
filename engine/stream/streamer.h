// The streamer brings segments into memory before their use: pinned segments once, the others through a ring. It
// returns ReadRequests and never reads files.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/arena.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/file/reader.h"
#include "qsf/file/tables.h"
#include "qsf/stream/read_request.h"
#include "stream/byte_ring.h"
#include "stream/plan.h"

namespace qsf {

/// This type is part of the interface for hosts, so it does not state kArenaBytes itself.
template <>
constexpr std::size_t arena_bytes<ReadRequest>() {
  static_assert(sizeof(ReadRequest) <= 32);
  return 32;
}

/// Returns the bytes of a segment's buffer: 48 bytes before a matrix that begins with a 16-byte header, so that its
/// data is 64-byte aligned; the bytes in the kernels' layout; and a margin to decompress in place.
std::uint64_t segment_buffer_bytes(const FileTables& tables, std::uint32_t segment);
/// Whether a segment is used in the mapped file (OpenOptions): a matrix in the kernels' layout, neither compressed nor
/// in rows that have to be tiled.
bool stays_in_file(const FileTables& tables, std::uint32_t segment, std::span<const std::byte> mapped);
/// Returns the matrix that the segment is a part of, or null for a segment of vectors.
const TensorEntry* matrix_of(const FileTables& tables, std::uint32_t segment);

/// Positions [begin, end) of a schedule.
struct ScheduleRange {
  std::uint32_t begin = 0, end = 0;
};

/// A range of the schedule whose segments a pass uses only if it selects them, such as those of a layer's experts.
struct Choice {
  ScheduleRange range;
  std::uint32_t first_slot = 0, n_slots = 0;  // the range's expert slots, in slots_
};

/// One thread, which computes, calls everything except complete and fail. Other threads may call those, also at the
/// same time.
class Streamer {
 public:
  /// The checks of a segment's bytes: at every read, not only at the first; and whether the host vouches for them, so
  /// that checksums are not compared.
  struct Checks {
    bool recheck = false, vouched = false;
  };
  /// `pinned`: whether each segment is pinned. If it is empty, vectors are, and all segments if there are no slots.
  /// `schedule`: the segments of a whole pass in order of use, each once, except one run of segments that occurs twice
  /// in the same order; it must outlive this object. `chosen`: ascending ranges of the schedule whose segments are used
  /// only after choose(). `mapped`: as in OpenOptions. Fails with bad_argument above kMaxSlots slots, or out_of_memory.
  Status init(Arena& arena, const FileTables& tables, const Plan& plan, std::span<const bool> pinned,
              std::span<const std::uint32_t> schedule, std::span<const ScheduleRange> chosen, Checks checks,
              std::span<const std::byte> mapped = {});

  enum class Use : std::uint8_t { in_order, lookup };
  /// Returns the segment's decompressed bytes, in tiles if the format is quantized. Returns null while the segment is
  /// being read, or if that failed (see failed()). At most one segment that is not pinned may be held. A look-up does
  /// not move the pass's position.
  const std::byte* acquire(std::uint32_t segment, Use use = Use::in_order);
  void release(std::uint32_t segment);
  /// Takes the ascending ranges of the schedule that a pass uses, so that the right segments are read ahead.
  void begin_pass(std::span<const ScheduleRange> ranges);
  /// The location of a segment: not (wholly) in memory, in the ring, or in a buffer that stays.
  enum class Residency : std::uint8_t { absent, in_ring, resident };
  Residency residency(std::uint32_t segment) const;
  /// Selects segments of the range that begins at `position`. Each choose() names one, in the order of reading, and
  /// returns its location; end_choice() ends the selection. Each is then acquired once, in any order. Before
  /// end_choice(), no segment after the range is read ahead.
  void begin_choice(std::uint32_t position);
  Residency choose(std::uint32_t segment);
  void end_choice();
  /// Requests every pinned segment, or only those that passes select. Returns whether all are in memory.
  enum class Pinned : std::uint8_t { all, chosen };
  bool preload(Pinned which = Pinned::all);

  std::optional<ReadRequest> next_request();
  /// Checks, decompresses and tiles the segment's bytes. Fails with bad_argument, bad_checksum, bad_tensor or as
  /// decompress() does.
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);
  /// Whether reading an acquired segment failed. A segment that is read ahead counts only after its acquire().
  bool failed() const { return failed_; }
  /// Returns the first error since recover(), if failed().
  Error error() const;
  /// Clears errors. Segments that were requested before and failed, or fail later, are requested again.
  void recover();

  bool is_pinned(std::uint32_t segment) const { return states_[segment].pinned; }
  /// Whether the segment is in the schedule and every pass uses it.
  bool is_in_order(std::uint32_t segment) const {
    return states_[segment].position != kNone && states_[segment].choice == kNone;
  }
  std::uint64_t bytes_requested() const { return bytes_requested_; }
  /// Returns the part of bytes_requested() for segments that passes select.
  std::uint64_t chosen_bytes_requested() const { return chosen_bytes_requested_; }

 private:
  enum class State : std::uint8_t { absent, requested, ready, failed };
  struct SegmentState {
    static constexpr std::size_t kArenaBytes = 32;
    std::atomic<State> state{State::absent};
    bool pinned : 1 = false, again : 1 = false;  // constant after init(); again: it is in schedule_ twice
    bool checked = false;                        // its stored bytes have passed their CRC
    bool due = false;                            // selected and not yet used
    std::uint32_t slot = kNone;                  // index in slots_, or kNone
    std::uint32_t choice = kNone;                // index in choices_; kNone if not in a range of `chosen`
    std::uint32_t wanted = 0;                    // n_chosen_ when it was selected last
    std::uint32_t position = kNone;              // the first in schedule_; kNone for look-ups
    std::uint32_t attempt = 0;                   // attempt_ when it was requested
    std::byte* buffer = nullptr;
  };
  struct Slot {
    static constexpr std::size_t kArenaBytes = 16;
    std::byte* buffer;  // in the ring: valid while a segment has it
    std::uint32_t segment;
    std::uint32_t used;  // in an expert slot: n_chosen_ at the last use
  };
  /// Scratch memory in which one thread at a time decompresses a segment or tiles strips.
  struct Desk {
    std::span<std::byte> room;
    std::atomic_flag taken;
  };
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr std::uint32_t kMaxSlots = 64;
  static constexpr std::uint32_t kMaxRanges = 8;
  static constexpr std::uint32_t kMaxDesks = 4;
  static constexpr std::uint32_t kAhead = 8;  // most requests in flight, in addition to the ring's

  std::byte* in_file(std::span<const std::byte> mapped, std::uint32_t segment) const;
  std::byte* raw(std::uint32_t segment) const;
  std::byte* stored(std::uint32_t segment) const;
  std::uint64_t room(std::uint64_t bytes) const;
  Status unpack(std::uint32_t segment);
  Status unpack_at(std::span<std::byte> desk, std::uint32_t segment);
  Desk& take_desk();
  bool request(std::uint32_t segment, bool evict);
  std::uint32_t until_used(const SegmentState& entry) const;
  Slot* ring_slot(std::uint32_t segment, bool evict);
  bool evict_last();
  Slot* kept_slot(const Choice& choice);
  void look_ahead();
  void forget(SegmentState& entry);
  void keep_error(const Error& error);

  FileTables tables_;
  std::span<SegmentState> states_;
  ByteRing ring_;
  std::byte* ring_base_ = nullptr;
  std::span<Slot> slots_;     // the ring's places, then expert slots
  std::uint32_t n_ring_ = 0;  // number of the ring's places
  std::span<const std::uint32_t> schedule_;
  std::span<std::uint32_t> streamed_;  // ascending positions in schedule_ that are neither pinned nor selected
  std::span<Choice> choices_;
  std::span<std::uint32_t> wanted_;  // segments of the current selection, in order of use
  std::uint32_t n_wanted_ = 0, next_wanted_ = 0;
  std::uint32_t next_choice_ = 0;  // index in choices_, from the start of the pass
  std::uint32_t n_chosen_ = 0;     // selections so far
  std::span<ReadRequest> queue_;
  std::array<Desk, kMaxDesks> desks_;
  std::uint32_t n_desks_ = 0;
  std::array<ScheduleRange, kMaxRanges> ranges_{};
  std::uint32_t n_ranges_ = 0;
  std::uint32_t queue_first_ = 0, queue_count_ = 0;
  std::uint32_t again_after_ = 0;  // distance of the two positions of segments that are in schedule_ twice
  std::uint32_t at_ = kNone;       // position of the last acquired segment
  std::uint32_t next_pinned_ = 0;  // earlier positions have been requested
  std::uint32_t held_ = kNone;
  std::uint32_t attempt_ = 0;  // recover() calls so far
  std::atomic<std::uint32_t> in_flight_{0};
  bool failed_ = false;
  bool waits_ = false;  // the segment acquired last has no room before more reads have ended
  Checks checks_;
  std::uint32_t in_block_ = 0;  // kBlock - 1 if ring buffers are whole blocks, for aligned files; else 0
  std::uint64_t bytes_requested_ = 0, chosen_bytes_requested_ = 0;
  std::atomic_flag keeping_;  // lets only the first failure write error_, until recover()
  std::atomic<bool> error_kept_{false};
  Error error_;
};

}  // namespace qsf
