// Brings segments into memory ahead of need: pinned ones once, the others through a ring. It asks for bytes by
// ReadRequest and never reads itself.
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

/// Hosts see requests, so they do not say it themselves.
template <>
constexpr std::size_t arena_bytes<ReadRequest>() {
  static_assert(sizeof(ReadRequest) <= 32);
  return 32;
}

/// The buffer that a segment needs: 48 bytes so that data behind a 16-byte header is 64-byte aligned, its bytes as the
/// kernels want them, and room to decompress in place.
std::uint64_t segment_buffer_bytes(const FileTables& tables, std::uint32_t segment);
/// Whether a segment is used in the mapped file (OpenOptions): a matrix as the kernels want it, neither compressed nor
/// in rows that are to be tiled.
bool stays_in_file(const FileTables& tables, std::uint32_t segment, std::span<const std::byte> mapped);
/// The matrix that lies in a segment, or nullptr for a segment of vectors.
const TensorEntry* matrix_of(const FileTables& tables, std::uint32_t segment);

/// Positions [begin, end) of a schedule.
struct ScheduleRange {
  std::uint32_t begin = 0, end = 0;
};

/// Segments that a pass uses where it chooses them, such as those of a layer's experts: a range of the schedule.
struct Choice {
  ScheduleRange range;
  std::uint32_t first_slot = 0, n_slots = 0;  // of those that keep what was chosen
};

/// One thread computes: acquire, release, prefetch, next_request, recover. complete and fail may come from others, also
/// at once.
class Streamer {
 public:
  /// `schedule`: the segments of a whole pass in order of use, each once; it must outlive this. With `recheck`, a
  /// segment is checked whenever it is read, not only the first time. `chosen`: ascending ranges of the schedule whose
  /// segments are used where choose() says so. `mapped`: as OpenOptions'.
  Status init(Arena& arena, const FileTables& tables, const Plan& plan, std::span<const bool> pinned,
              std::span<const std::uint32_t> schedule, std::span<const ScheduleRange> chosen, bool recheck,
              std::span<const std::byte> mapped = {});

  enum class Use : std::uint8_t { in_order, lookup };
  /// The segment's decompressed bytes (tiled where the file has rows), or nullptr while they are on their way or when
  /// reading them has failed(). At most one segment that is not pinned may be held. A look-up does not move the place
  /// in the pass.
  const std::byte* acquire(std::uint32_t segment, Use use = Use::in_order);
  void release(std::uint32_t segment);
  /// Says which parts of the schedule a pass uses, so that what is fetched ahead is what comes next. They ascend.
  void begin_pass(std::span<const ScheduleRange> ranges);
  /// Where a segment is: not in memory as a whole, in the ring, or where it stays.
  enum class Presence : std::uint8_t { none, passing, kept };
  Presence presence(std::uint32_t segment) const;
  /// choose() says which segments the pass takes of the chosen range that begins at `position`, in the order in which
  /// they are read, and gives where they are; end_choice() says that these are all. Each is acquired once, in any
  /// order. Until then nothing behind the range is fetched ahead.
  void begin_choice(std::uint32_t position);
  Presence choose(std::uint32_t segment);
  void end_choice();
  /// Asks for every pinned segment; true when all are there.
  bool preload();

  std::optional<ReadRequest> next_request();
  /// Checks the bytes, decompresses and tiles them.
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);
  /// Whether a segment that was acquired could not be read. What is fetched ahead fails only once it is needed.
  bool failed() const { return failed_; }
  /// Of failed(): the first error since recover().
  Error error() const;
  /// Begins anew after an error: what failed is asked for again, and what was asked for before and fails later is too.
  void recover();

  bool is_pinned(std::uint32_t segment) const { return places_[segment].pinned; }
  std::uint64_t bytes_requested() const { return bytes_requested_; }
  /// Of those, of segments that passes choose.
  std::uint64_t chosen_bytes_requested() const { return chosen_bytes_requested_; }

 private:
  enum class State : std::uint8_t { absent, requested, ready, failed };
  struct Place {
    static constexpr std::size_t kArenaBytes = 32;
    std::atomic<State> state{State::absent};
    bool pinned = false;
    bool checked = false;            // its stored bytes had their CRC once
    bool due = false;                // was chosen and not used yet
    std::uint32_t slot = kNone;      // kNone unless in slots_
    std::uint32_t choice = kNone;    // in choices_, kNone for what every pass uses
    std::uint32_t wanted = 0;        // when it was chosen last, in choices
    std::uint32_t position = kNone;  // in schedule_, kNone for look-ups
    std::uint32_t attempt = 0;       // attempt_ when it was requested
    std::byte* buffer = nullptr;
  };
  struct Slot {
    static constexpr std::size_t kArenaBytes = 16;
    std::byte* buffer;  // of the ring's: while a segment has it
    std::uint32_t segment;
    std::uint32_t used;  // of one that keeps what was chosen: when, in choices
  };
  /// Where one thread at a time decompresses, or tiles a strip of rows.
  struct Desk {
    std::span<std::byte> room;
    std::atomic_flag taken;
  };
  static constexpr std::uint32_t kNone = 0xffffffffu;
  static constexpr std::uint32_t kMaxSlots = 64;
  static constexpr std::uint32_t kMaxRanges = 8;
  static constexpr std::uint32_t kMaxDesks = 4;
  static constexpr std::uint32_t kAhead = 8;  // requests under way at most, but for the ring's

  std::byte* in_file(std::span<const std::byte> mapped, std::uint32_t segment) const;
  std::byte* raw(std::uint32_t segment) const;
  std::byte* stored(std::uint32_t segment) const;
  std::uint64_t room(std::uint64_t bytes) const;
  Status unpack(std::uint32_t segment);
  Status unpack_at(std::span<std::byte> desk, std::uint32_t segment);
  Desk& take_desk();
  bool request(std::uint32_t segment, bool evict);
  Slot* ring_slot(std::uint32_t segment, bool evict);
  bool evict_last();
  Slot* kept_slot(const Choice& choice);
  void look_ahead();
  void forget(Place& place);
  void keep_error(const Error& error);

  FileTables tables_;
  std::span<Place> places_;
  ByteRing ring_;
  std::byte* ring_base_ = nullptr;
  std::span<Slot> slots_;     // the ring's places, then those that keep what was chosen
  std::uint32_t n_ring_ = 0;  // of the former
  std::span<const std::uint32_t> schedule_;
  std::span<std::uint32_t> streamed_;  // positions in schedule_ of what is neither pinned nor chosen, ascending
  std::span<Choice> choices_;
  std::span<std::uint32_t> wanted_;  // segments that were chosen last, in order of use
  std::uint32_t n_wanted_ = 0, next_wanted_ = 0;
  std::uint32_t next_choice_ = 0;  // of the pass
  std::uint32_t n_chosen_ = 0;     // how often was chosen
  std::span<ReadRequest> queue_;
  std::array<Desk, kMaxDesks> desks_;
  std::uint32_t n_desks_ = 0;
  std::array<ScheduleRange, kMaxRanges> ranges_{};
  std::uint32_t n_ranges_ = 0;
  std::uint32_t queue_first_ = 0, queue_count_ = 0;
  std::uint32_t at_ = kNone;       // position of the last acquired segment
  std::uint32_t next_pinned_ = 0;  // positions before it were asked for
  std::uint32_t held_ = kNone;
  std::uint32_t attempt_ = 0;  // how often recover() was called
  std::atomic<std::uint32_t> in_flight_{0};
  bool recheck_ = false, failed_ = false;
  std::uint32_t in_block_ = 0;  // kBlock - 1 where buffers are whole blocks, for files that are aligned
  std::uint64_t bytes_requested_ = 0, chosen_bytes_requested_ = 0;
  std::atomic_flag keeping_;  // guards error_ against two failures at once, until recover()
  std::atomic<bool> error_kept_{false};
  Error error_;
};

}  // namespace qsf
