#include "stream/streamer.h"

#include <algorithm>
#include <cstring>

#include "qsf/base/checksum.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::uint64_t kLead = kAlignment - kTensorHeaderSize;

/// Machines with smaller pointers lack the address space for files of any size.
constexpr bool kMaps = sizeof(void*) >= 8;

bool begins_with_header(const FileTables& tables, std::uint32_t segment) {
  const TensorEntry* matrix = matrix_of(tables, segment);
  return matrix != nullptr && matrix->first_segment == segment;
}

bool needs_tiling(const TensorEntry* matrix) {
  if (matrix == nullptr || matrix->layout != Layout::rows) return false;
  const Format* format = find_format(matrix->format);
  return format != nullptr && format->quantized();
}

std::uint64_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// Returns the offset of the matrix's rows in the segment's decompressed bytes.
std::uint64_t data_begin(const FileTables& tables, std::uint32_t segment) {
  return begins_with_header(tables, segment) ? kTensorHeaderSize : 0;
}

/// Returns the decompressed bytes after tiling, which pads a last strip of rows to 16.
std::uint64_t unpacked_bytes(const FileTables& tables, std::uint32_t segment) {
  const std::uint64_t raw = tables.segments[segment].raw_size;
  const TensorEntry* matrix = matrix_of(tables, segment);
  if (!needs_tiling(matrix)) return raw;
  const std::uint64_t row = row_bytes(*find_format(matrix->format), matrix->cols);
  const std::uint64_t begin = data_begin(tables, segment);
  const std::uint64_t rows = (raw - begin) / row;
  return begin + (rows + kTileRows - 1) / kTileRows * kTileRows * row;
}

/// Returns the scratch bytes that unpacking needs in addition to the segment's buffer: ZSTD's workspace, or the longest
/// strip that has to be tiled.
std::uint64_t desk_bytes(const FileTables& tables) {
  std::uint64_t most = 0;
  for (const SegmentEntry& s : tables.segments) most = std::max(most, decompress_workspace(s.compression));
  for (const TensorEntry& t : tables.tensors) {
    if (!needs_tiling(&t)) continue;
    most = std::max(most, kTileRows * row_bytes(*find_format(t.format), t.cols));
  }
  return most;
}

}  // namespace

bool stays_in_file(const FileTables& tables, std::uint32_t segment, std::span<const std::byte> mapped) {
  if (!kMaps || mapped.empty()) return false;
  const TensorEntry* const matrix = matrix_of(tables, segment);
  return tables.segments[segment].compression == Compression::none && matrix != nullptr && !needs_tiling(matrix);
}

const TensorEntry* matrix_of(const FileTables& tables, std::uint32_t segment) {
  if ((tables.segments[segment].flags & kSegmentVectors) != 0) return nullptr;
  std::size_t low = 0, high = tables.tensors.size();  // searches for the last tensor with first_segment <= segment
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (tables.tensors[middle].first_segment <= segment ? low : high) = middle;
  }
  return &tables.tensors[low];
}

std::uint64_t segment_buffer_bytes(const FileTables& tables, std::uint32_t segment) {
  const SegmentEntry& s = tables.segments[segment];
  const std::uint64_t lead = begins_with_header(tables, segment) ? kLead : 0;
  const std::uint64_t in_place = s.raw_size + in_place_margin(s.compression, s.raw_size, s.stored_size);
  return lead + std::max(in_place, unpacked_bytes(tables, segment));
}

Status Streamer::init(Arena& arena, const FileTables& tables, const Plan& plan, std::span<const bool> pinned,
                      std::span<const std::uint32_t> schedule, std::span<const ScheduleRange> chosen, Checks checks,
                      std::span<const std::byte> mapped) {
  if (plan.ring_slots > kMaxSlots) {
    return make_error(ErrorCode::bad_argument, "a ring of {} slots is more than the {} that are possible",
                      plan.ring_slots, kMaxSlots);
  }
  tables_ = tables;
  schedule_ = schedule;
  checks_ = checks;
  in_block_ = (tables.header.flags & kFlagAligned) != 0 && plan.ring_slots != 0 ? kBlock - 1 : 0;
  QSF_TRY(arena.take(states_, tables.segments.size(), Region::tables));
  n_ring_ = std::min(plan.ring_slots * kPlacesOfSlot, kMaxSlots);
  QSF_TRY(ring_.init(arena, plan.ring_slots * room(plan.slot_bytes), n_ring_));
  QSF_TRY(arena.take(slots_, std::uint64_t{n_ring_} + plan.expert_slots, Region::tables));
  QSF_TRY(arena.take(choices_, chosen.size(), Region::tables));
  std::uint32_t widest = 0;
  for (const ScheduleRange& range : chosen) widest = std::max(widest, range.end - range.begin);
  QSF_TRY(arena.take(wanted_, widest, Region::tables));
  QSF_TRY(arena.take(queue_, n_ring_ + kAhead + 1, Region::tables));
  QSF_TRY(arena.take(streamed_, schedule.size(), Region::tables));
  n_desks_ = std::clamp(plan.ring_slots, 1u, kMaxDesks);
  for (Desk& desk : std::span(desks_).first(n_desks_)) {
    QSF_TRY(arena.take(desk.room, desk_bytes(tables), Region::tables));
  }
  for (std::uint32_t i = 0; i < tables.segments.size(); ++i) {
    std::span<std::byte> buffer;
    const bool vectors = (tables.segments[i].flags & kSegmentVectors) != 0;
    const bool pins = pinned.empty() ? plan.ring_slots == 0 || vectors : pinned[i];
    const bool stays = pins && stays_in_file(tables_, i, mapped);
    if (pins && !stays) QSF_TRY(arena.take(buffer, segment_buffer_bytes(tables_, i), Region::pinned));
    if (arena.is_dry()) continue;
    states_[i].pinned = pins;
    states_[i].buffer = stays ? in_file(mapped, i) : buffer.data();
  }
  const std::uint64_t of_ring = plan.ring_slots * room(plan.slot_bytes), of_chosen = room(plan.expert_slot_bytes);
  std::span<std::byte> all;
  QSF_TRY(arena.take(all, of_ring + plan.expert_slots * of_chosen + in_block_, Region::ring));
  if (arena.is_dry()) return {};
  ring_base_ = all.data() + ((0 - address_of(all.data())) & in_block_);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    slots_[i] = {i < n_ring_ ? nullptr : ring_base_ + of_ring + (i - n_ring_) * of_chosen, kNone, 0};
  }
  const std::uint64_t n_choices = chosen.size();
  for (std::uint32_t i = 0; i < n_choices; ++i) {  // shares differ by one slot at most
    const auto first = static_cast<std::uint32_t>(plan.expert_slots * std::uint64_t{i} / n_choices);
    const auto end = static_cast<std::uint32_t>(plan.expert_slots * (std::uint64_t{i} + 1) / n_choices);
    choices_[i] = {chosen[i], n_ring_ + first, end - first};
    for (std::uint32_t p = chosen[i].begin; p < chosen[i].end; ++p) states_[schedule[p]].choice = i;
  }
  std::size_t n_streamed = 0;
  for (std::uint32_t p = 0; p < schedule.size(); ++p) {
    SegmentState& entry = states_[schedule[p]];
    entry.again = entry.position != kNone;
    if (entry.again)
      again_after_ = p - entry.position;
    else
      entry.position = p;
    if (!entry.pinned && entry.choice == kNone) streamed_[n_streamed++] = p;
  }
  streamed_ = streamed_.first(n_streamed);
  return {};
}

void Streamer::begin_pass(std::span<const ScheduleRange> ranges) {
  n_ranges_ = static_cast<std::uint32_t>(std::min<std::size_t>(ranges.size(), kMaxRanges));
  std::copy_n(ranges.begin(), n_ranges_, ranges_.begin());
  at_ = kNone;
  n_wanted_ = next_wanted_ = next_choice_ = 0;
}

void Streamer::begin_choice(std::uint32_t position) {
  while (next_choice_ < choices_.size() && choices_[next_choice_].range.begin < position) ++next_choice_;
  n_wanted_ = next_wanted_ = 0;
  ++n_chosen_;
}

Streamer::Residency Streamer::choose(std::uint32_t segment) {
  states_[segment].wanted = n_chosen_;
  states_[segment].due = true;
  if (n_wanted_ < wanted_.size()) wanted_[n_wanted_++] = segment;
  return residency(segment);
}

void Streamer::end_choice() {
  if (next_choice_ < choices_.size()) ++next_choice_;
}

Streamer::Residency Streamer::residency(std::uint32_t segment) const {
  const SegmentState& entry = states_[segment];
  if (entry.state.load(std::memory_order_acquire) != State::ready) return Residency::absent;
  return !entry.pinned && entry.slot < n_ring_ ? Residency::in_ring : Residency::resident;
}

/// Returns the address that a segment's buffer would have if it is used in the mapped file. Nothing is written there.
std::byte* Streamer::in_file(std::span<const std::byte> mapped, std::uint32_t segment) const {
  const std::byte* const at = mapped.data() + tables_.segments[segment].offset;
  return const_cast<std::byte*>(at) - (begins_with_header(tables_, segment) ? kLead : 0);
}

std::byte* Streamer::raw(std::uint32_t segment) const {
  return states_[segment].buffer + (begins_with_header(tables_, segment) ? kLead : 0);
}

/// Returns the address for the segment's stored bytes. Bytes to be decompressed end with the buffer's margin. In a ring
/// of whole blocks, their offset in a block is the same as in the file.
std::byte* Streamer::stored(std::uint32_t segment) const {
  const SegmentEntry& s = tables_.segments[segment];
  const std::uint64_t margin = in_place_margin(s.compression, s.raw_size, s.stored_size);
  std::byte* const at = raw(segment) + s.raw_size - s.stored_size + margin;
  return states_[segment].pinned ? at : at + ((s.offset - address_of(at)) & in_block_);
}

/// Returns the bytes that a buffer of `bytes` takes in the ring.
std::uint64_t Streamer::room(std::uint64_t bytes) const {
  return (align_up(bytes) + 2 * in_block_) & ~std::uint64_t{in_block_};
}

const std::byte* Streamer::acquire(std::uint32_t segment, Use use) {
  SegmentState& entry = states_[segment];
  const State state = entry.state.load(std::memory_order_acquire);
  waits_ = false;
  if (use == Use::in_order && !entry.pinned) {
    const bool again = entry.again && at_ != kNone && at_ > entry.position;
    at_ = again ? entry.position + again_after_ : entry.position;
  }
  if (state == State::ready) {
    held_ = segment;
    if (entry.slot != kNone) slots_[entry.slot].used = n_chosen_;
    return raw(segment);
  }
  if (state == State::failed) {
    // A segment that was requested before the last recover() gets another attempt.
    if (entry.attempt == attempt_)
      failed_ = true;
    else
      forget(entry);
  }
  waits_ = entry.state.load(std::memory_order_relaxed) == State::absent && !request(segment, true);
  return nullptr;
}

void Streamer::forget(SegmentState& entry) {
  if (entry.slot != kNone) slots_[entry.slot].segment = kNone;
  if (entry.slot < n_ring_) ring_.give_back(entry.slot);
  entry.slot = kNone;
  entry.state.store(State::absent, std::memory_order_relaxed);
}

void Streamer::release(std::uint32_t segment) {
  held_ = kNone;
  SegmentState& entry = states_[segment];
  entry.due = false;
  const bool keeps = entry.pinned || (entry.slot != kNone && entry.slot >= n_ring_);
  if (!keeps) forget(entry);
}

bool Streamer::preload(Pinned which) {
  bool all = true;
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].pinned || (which == Pinned::chosen && states_[i].choice == kNone)) continue;
    const State state = states_[i].state.load(std::memory_order_acquire);
    all &= state == State::ready;
    if (state == State::failed) acquire(i, Use::lookup);
    if (state == State::absent && in_flight_.load(std::memory_order_relaxed) < kAhead) request(i, false);
  }
  return all;
}

/// Returns the distance from the pass's position to the segment's next use, in this pass or the next; for a look-up,
/// the length of the schedule.
std::uint32_t Streamer::until_used(const SegmentState& entry) const {
  const auto n = static_cast<std::uint32_t>(schedule_.size());
  if (entry.position == kNone) return n;
  const std::uint32_t to = n - (at_ == kNone ? 0 : at_), first = (entry.position + to) % n;
  return entry.again ? std::min(first, (entry.position + again_after_ + to) % n) : first;
}

/// Returns room in the ring, or null. With `evict`, evicts segments that are used last until there is room.
Streamer::Slot* Streamer::ring_slot(std::uint32_t segment, bool evict) {
  const std::uint64_t bytes = room(segment_buffer_bytes(tables_, segment));
  std::optional<std::uint32_t> place = ring_.take(bytes);
  while (!place && evict && evict_last()) place = ring_.take(bytes);
  if (!place) return nullptr;
  slots_[*place].buffer = ring_base_ + ring_.begin(*place);
  return &slots_[*place];
}

/// Evicts the ring's segment with the latest next use. Returns false if no segment can be evicted.
bool Streamer::evict_last() {
  SegmentState* last = nullptr;
  std::uint32_t last_distance = 0;
  for (const Slot& slot : slots_.first(n_ring_)) {
    if (slot.segment == kNone || slot.segment == held_) continue;
    SegmentState& entry = states_[slot.segment];
    const State state = entry.state.load(std::memory_order_acquire);
    if (state != State::ready && state != State::failed) continue;
    const std::uint32_t distance = until_used(entry);
    if (last != nullptr && distance <= last_distance) continue;
    last = &entry;
    last_distance = distance;
  }
  if (last != nullptr) forget(*last);
  return last != nullptr;
}

/// Returns one of the range's expert slots: an empty one, else the one used longest ago whose segment is not selected
/// now, else null. Otherwise, with fewer slots than a token's segments, each would be overwritten before its next use.
Streamer::Slot* Streamer::kept_slot(const Choice& choice) {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_.subspan(choice.first_slot, choice.n_slots)) {
    if (slot.segment == kNone) return &slot;
    const SegmentState& entry = states_[slot.segment];
    const State state = entry.state.load(std::memory_order_acquire);
    const bool settled = state == State::ready || state == State::failed;
    if (slot.segment == held_ || !settled || entry.wanted == n_chosen_) continue;
    if (oldest == nullptr || slot.used < oldest->used) oldest = &slot;
  }
  if (oldest != nullptr) forget(states_[oldest->segment]);
  return oldest;
}

bool Streamer::request(std::uint32_t segment, bool evict) {
  if (queue_count_ == queue_.size()) return false;
  SegmentState& entry = states_[segment];
  if (!entry.pinned) {
    Slot* slot = entry.choice != kNone ? kept_slot(choices_[entry.choice]) : nullptr;
    if (slot == nullptr) slot = ring_slot(segment, evict);
    if (slot == nullptr) return false;
    slot->segment = segment;
    entry.slot = static_cast<std::uint32_t>(slot - slots_.data());
    entry.buffer = slot->buffer;
  }
  const SegmentEntry& s = tables_.segments[segment];
  std::byte* const into = stored(segment);
  if (s.compression == Compression::none) entry.buffer += into - raw(segment);
  const bool blocks = in_block_ != 0 && !entry.pinned;
  queue_[(queue_first_ + queue_count_++) % queue_.size()] = {s.offset, s.stored_size, segment, into,
                                                             s.crc,    true,          blocks};
  bytes_requested_ += s.stored_size;
  if (entry.choice != kNone) chosen_bytes_requested_ += s.stored_size;
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  entry.attempt = attempt_;
  entry.state.store(State::requested, std::memory_order_relaxed);
  return true;
}

/// Requests selected segments, then the ring's next segments in order of use, in this pass and the next, up to the next
/// selection, then absent pinned segments.
void Streamer::look_ahead() {
  if (waits_) return;  // reads would take the room that evictions have made for the acquired segment
  for (; next_wanted_ < n_wanted_; ++next_wanted_) {
    const SegmentState& entry = states_[wanted_[next_wanted_]];
    if (!entry.due || entry.state.load(std::memory_order_acquire) != State::absent) continue;
    if (in_flight_.load(std::memory_order_relaxed) >= n_ring_ + kAhead) return;
    if (!request(wanted_[next_wanted_], false)) return;
  }
  const auto wanted = [&](std::uint32_t range) {  // the streamed positions of a range
    const auto begin = std::ranges::lower_bound(streamed_, ranges_[range].begin);
    return std::span(begin, std::ranges::lower_bound(streamed_, ranges_[range].end));
  };
  std::uint32_t range = 0;  // the pass's current range; `next` is an index in its streamed positions
  while (range < n_ranges_ && at_ != kNone && at_ >= ranges_[range].end) ++range;
  std::size_t next = 0;
  if (range < n_ranges_ && at_ != kNone) {
    const auto part = wanted(range);
    next = static_cast<std::size_t>(std::ranges::upper_bound(part, at_) - part.begin());
  }
  // Requests each streamed segment of the pass at most once.
  const bool chooses = next_choice_ < choices_.size();
  const std::uint32_t end = chooses ? choices_[next_choice_].range.begin : kNone;
  const std::uint32_t end_of_next = chooses ? 0 : choices_.empty() ? kNone : choices_[0].range.begin;
  for (std::size_t asked = 0, turns = 0; n_ranges_ > 0 && asked < n_ring_ && turns <= n_ranges_;) {
    const auto part = wanted(range % n_ranges_);
    if (next >= part.size()) {
      ++range;
      ++turns;
      next = 0;
      continue;
    }
    const std::uint32_t position = part[next++], segment = schedule_[position];
    if (position >= (range < n_ranges_ ? end : end_of_next)) break;
    ++asked;
    if (states_[segment].state.load(std::memory_order_acquire) == State::absent && !request(segment, false)) break;
  }
  for (; next_pinned_ < schedule_.size() && in_flight_.load(std::memory_order_relaxed) < kAhead; ++next_pinned_) {
    const SegmentState& entry = states_[schedule_[next_pinned_]];
    if (!entry.pinned || entry.state.load(std::memory_order_acquire) != State::absent) continue;
    if (!request(schedule_[next_pinned_], false)) return;
  }
}

std::optional<ReadRequest> Streamer::next_request() {
  if (queue_count_ == 0) look_ahead();
  if (queue_count_ == 0) return std::nullopt;
  const ReadRequest request = queue_[queue_first_];
  queue_first_ = (queue_first_ + 1) % static_cast<std::uint32_t>(queue_.size());
  --queue_count_;
  return request;
}

Status Streamer::complete(std::uint32_t ticket) {
  if (ticket >= states_.size() || states_[ticket].state.load(std::memory_order_relaxed) != State::requested) {
    return make_error(ErrorCode::bad_argument, "ticket {} was not asked for", ticket);
  }
  const Status status = unpack(ticket);
  if (!status) keep_error(status.error());
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  states_[ticket].state.store(status ? State::ready : State::failed, std::memory_order_release);
  return status;
}

void Streamer::fail(std::uint32_t ticket, const Error& error) {
  if (ticket >= states_.size() || states_[ticket].state.load(std::memory_order_relaxed) != State::requested) return;
  keep_error(error);
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  states_[ticket].state.store(State::failed, std::memory_order_release);
}

void Streamer::keep_error(const Error& error) {
  if (keeping_.test_and_set(std::memory_order_acquire)) return;  // only the first error is reported
  error_ = error;
  error_kept_.store(true, std::memory_order_release);
}

Error Streamer::error() const {
  if (error_kept_.load(std::memory_order_acquire)) return error_;
  return make_error(ErrorCode::io_error, "a segment could not be read");
}

void Streamer::recover() {
  failed_ = false;
  ++attempt_;
  for (SegmentState& entry : states_) {
    if (entry.state.load(std::memory_order_acquire) == State::failed) forget(entry);
  }
  next_pinned_ = 0;
  if (error_kept_.exchange(false, std::memory_order_acquire)) keeping_.clear(std::memory_order_release);
}

Streamer::Desk& Streamer::take_desk() {
  for (std::uint32_t i = 0;; i = (i + 1) % n_desks_) {
    if (!desks_[i].taken.test_and_set(std::memory_order_acquire)) return desks_[i];
  }
}

Status Streamer::unpack(std::uint32_t segment) {
  const bool needs_desk =
      decompress_workspace(tables_.segments[segment].compression) != 0 || needs_tiling(matrix_of(tables_, segment));
  if (!needs_desk) return unpack_at({}, segment);
  Desk& desk = take_desk();
  const Status status = unpack_at(desk.room, segment);
  desk.taken.clear(std::memory_order_release);
  return status;
}

Status Streamer::unpack_at(std::span<std::byte> desk, std::uint32_t segment) {
  const SegmentEntry& s = tables_.segments[segment];
  std::byte* at = raw(segment);
  const std::span<std::byte> bytes(at, s.raw_size);
  const std::span<const std::byte> stored(this->stored(segment), s.stored_size);
  bool& checked = states_[segment].checked;
  if (const std::uint32_t crc = checked || checks_.vouched ? s.crc : crc32(stored); crc != s.crc) {
    return make_error(ErrorCode::bad_checksum,
                      "segment {} ({} bytes at {}) has CRC-32 {:08x}, not the {:08x} that the file states", segment,
                      s.stored_size, s.offset, crc, s.crc);
  }
  if (s.compression != Compression::none) QSF_TRY(decompress(s.compression, stored, bytes, desk));
  if (!checked) QSF_TRY(check_inline_headers(tables_.header, tables_.tensors, tables_.segments, segment, bytes));
  checked = !checks_.recheck;
  const TensorEntry* matrix = matrix_of(tables_, segment);
  if (!needs_tiling(matrix)) return {};
  const Format& format = *find_format(matrix->format);
  const std::uint64_t begin = data_begin(tables_, segment);
  const auto row = static_cast<std::size_t>(row_bytes(format, matrix->cols));
  std::uint64_t left = (s.raw_size - begin) / row;
  for (std::byte* strip = at + begin; left > 0; strip += kTileRows * row) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kTileRows));
    std::memcpy(desk.data(), strip, n * row);
    tile_strip(format, desk.first(n * row), n, matrix->cols, {strip, kTileRows * row});
    left -= n;
  }
  return {};
}

}  // namespace qsf
