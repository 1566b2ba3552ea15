#include "stream/streamer.h"

#include <algorithm>
#include <cstring>

#include "qsf/base/checksum.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::uint64_t kLead = kAlignment - kTensorHeaderSize;

bool begins_with_header(const FileTables& tables, std::uint32_t segment) {
  const TensorEntry* matrix = matrix_of(tables, segment);
  return matrix != nullptr && matrix->first_segment == segment;
}

bool needs_tiling(const TensorEntry* matrix) {
  if (matrix == nullptr || matrix->layout != Layout::rows) return false;
  const Format* format = find_format(matrix->format);
  return format != nullptr && format->quantized();
}

/// Where the matrix's rows begin in the segment's decompressed bytes.
std::uint64_t data_begin(const FileTables& tables, std::uint32_t segment) {
  return begins_with_header(tables, segment) ? kTensorHeaderSize : 0;
}

/// Decompressed bytes after tiling: a last strip of rows is filled up to 16.
std::uint64_t unpacked_bytes(const FileTables& tables, std::uint32_t segment) {
  const std::uint64_t raw = tables.segments[segment].raw_size;
  const TensorEntry* matrix = matrix_of(tables, segment);
  if (!needs_tiling(matrix)) return raw;
  const std::uint64_t row = row_bytes(*find_format(matrix->format), matrix->cols);
  const std::uint64_t begin = data_begin(tables, segment);
  const std::uint64_t rows = (raw - begin) / row;
  return begin + (rows + kTileRows - 1) / kTileRows * kTileRows * row;
}

/// Bytes of the longest strip that has to be tiled.
std::uint64_t strip_bytes(const FileTables& tables) {
  std::uint64_t most = 0;
  for (const TensorEntry& t : tables.tensors) {
    if (!needs_tiling(&t)) continue;
    most = std::max(most, kTileRows * row_bytes(*find_format(t.format), t.cols));
  }
  return most;
}

}  // namespace

const TensorEntry* matrix_of(const FileTables& tables, std::uint32_t segment) {
  if ((tables.segments[segment].flags & kSegmentVectors) != 0) return nullptr;
  std::size_t low = 0, high = tables.tensors.size();  // the last tensor whose first segment is not behind `segment`
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (tables.tensors[middle].first_segment <= segment ? low : high) = middle;
  }
  return &tables.tensors[low];
}

std::uint64_t segment_buffer_bytes(const FileTables& tables, std::uint32_t segment) {
  const SegmentEntry& s = tables.segments[segment];
  const std::uint64_t lead = begins_with_header(tables, segment) ? kLead : 0;
  const std::uint64_t in_place = s.raw_size + in_place_margin(s.compression, s.stored_size);
  return lead + std::max(in_place, unpacked_bytes(tables, segment));
}

std::uint64_t Streamer::fixed_bytes(const FileTables& tables) {
  return tables.segments.size() * (sizeof(Place) + sizeof(std::uint32_t)) + kMaxSlots * sizeof(Slot) +
         (kMaxSlots + kAhead + 1) * sizeof(ReadRequest) + strip_bytes(tables);
}

Status Streamer::init(Arena& arena, const FileTables& tables, const Plan& plan, std::span<const bool> pinned,
                      std::span<const std::uint32_t> order, std::uint32_t n_head) {
  if (plan.ring_slots > kMaxSlots) {
    return make_error(ErrorCode::bad_argument, "a ring of {} slots is more than the {} that are possible",
                      plan.ring_slots, kMaxSlots);
  }
  tables_ = tables;
  order_ = order;
  n_head_ = n_head;
  at_ = static_cast<std::uint32_t>(order.size());

  const auto places = arena.take<Place>(tables.segments.size(), Region::tables);
  const auto slots = arena.take<Slot>(plan.ring_slots, Region::tables);
  const auto queue = arena.take<ReadRequest>(plan.ring_slots + kAhead + 1, Region::tables);
  if (!places || !slots || !queue) return (!places ? places.error() : !slots ? slots.error() : queue.error());
  places_ = *places;
  slots_ = *slots;
  queue_ = *queue;

  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    place.pinned = pinned[i];
    place.slot = place.position = kNone;
    if (!place.pinned) continue;
    const auto buffer = arena.take<std::byte>(segment_buffer_bytes(tables_, i), Region::pinned);
    if (!buffer) return buffer.error();
    place.buffer = buffer->data();
  }
  std::size_t n_streamed = 0;
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    places_[order[p]].position = p;
    n_streamed += !pinned[order[p]];
  }
  const auto streamed = arena.take<std::uint32_t>(n_streamed, Region::tables);
  if (!streamed) return streamed.error();
  streamed_ = *streamed;
  for (std::uint32_t p = 0, i = 0; p < order.size(); ++p) {
    if (!pinned[order[p]]) streamed_[i++] = p;
  }
  for (Slot& slot : slots_) {
    const auto buffer = arena.take<std::byte>(plan.slot_bytes, Region::ring);
    if (!buffer) return buffer.error();
    slot = {buffer->data(), kNone};
  }
  const auto strip_memory = arena.take<std::byte>(strip_bytes(tables), Region::tables);
  if (!strip_memory) return strip_memory.error();
  strip_ = *strip_memory;
  return {};
}

std::byte* Streamer::raw(std::uint32_t segment) const {
  return places_[segment].buffer + (begins_with_header(tables_, segment) ? kLead : 0);
}

const std::byte* Streamer::acquire(std::uint32_t segment, Use use) {
  Place& place = places_[segment];
  const State state = place.state.load(std::memory_order_acquire);
  if (use == Use::in_order && !place.pinned) at_ = place.position;
  if (state == State::ready) {
    held_ = segment;
    return raw(segment);
  }
  if (state == State::absent) request(segment, true);
  return nullptr;
}

void Streamer::release(std::uint32_t segment) {
  held_ = kNone;
  Place& place = places_[segment];
  if (place.pinned) return;
  slots_[place.slot].segment = kNone;
  place.slot = kNone;
  place.state.store(State::absent, std::memory_order_relaxed);
}

bool Streamer::preload() {
  bool all = true;
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].pinned) continue;
    const State state = places_[i].state.load(std::memory_order_acquire);
    all &= state == State::ready;
    if (state == State::absent && in_flight_.load(std::memory_order_relaxed) < kAhead) request(i, false);
  }
  return all;
}

/// A slot without a segment; else, to evict, the one whose segment is used last of all that wait.
Streamer::Slot* Streamer::free_slot(bool evict) {
  Slot* last = nullptr;
  std::uint32_t last_distance = 0;
  for (Slot& slot : slots_) {
    if (slot.segment == kNone) return &slot;
    const Place& place = places_[slot.segment];
    if (!evict || slot.segment == held_ || place.state.load(std::memory_order_acquire) != State::ready) continue;
    const auto n = static_cast<std::uint32_t>(order_.size());
    const std::uint32_t distance = place.position == kNone ? n : (place.position + n - at_) % n;
    if (last == nullptr || distance > last_distance) {
      last = &slot;
      last_distance = distance;
    }
  }
  if (last == nullptr) return nullptr;
  places_[last->segment].slot = kNone;
  places_[last->segment].state.store(State::absent, std::memory_order_relaxed);
  last->segment = kNone;
  return last;
}

bool Streamer::request(std::uint32_t segment, bool evict) {
  if (queue_count_ == queue_.size()) return false;
  Place& place = places_[segment];
  if (!place.pinned) {
    Slot* slot = free_slot(evict);
    if (slot == nullptr) return false;
    slot->segment = segment;
    place.slot = static_cast<std::uint32_t>(slot - slots_.data());
    place.buffer = slot->buffer;
  }
  const SegmentEntry& s = tables_.segments[segment];
  std::byte* into = raw(segment);
  if (s.compression != Compression::none)
    into += s.raw_size + in_place_margin(s.compression, s.stored_size) - s.stored_size;
  queue_[(queue_first_ + queue_count_++) % queue_.size()] = {s.offset, s.stored_size, segment, into, s.crc, true};
  bytes_requested_ += s.stored_size;
  in_flight_.fetch_add(1, std::memory_order_relaxed);
  place.state.store(State::requested, std::memory_order_relaxed);
  return true;
}

/// Asks for the ring's next segments in order of use, then for pinned ones that are not there yet.
void Streamer::look_ahead() {
  const std::uint32_t n_pass = static_cast<std::uint32_t>(order_.size()) - (with_head_ ? 0 : n_head_);
  const auto end = std::lower_bound(streamed_.begin(), streamed_.end(), n_pass);
  auto next = std::upper_bound(streamed_.begin(), end, at_);
  const auto n = static_cast<std::size_t>(end - streamed_.begin());
  for (std::size_t i = 0; i < std::min(n, slots_.size()); ++i, ++next) {
    if (next == end) next = streamed_.begin();
    const std::uint32_t segment = order_[*next];
    if (places_[segment].state.load(std::memory_order_acquire) == State::absent && !request(segment, false)) break;
  }
  for (; next_pinned_ < order_.size() && in_flight_.load(std::memory_order_relaxed) < kAhead; ++next_pinned_) {
    const Place& place = places_[order_[next_pinned_]];
    if (!place.pinned || place.state.load(std::memory_order_acquire) != State::absent) continue;
    if (!request(order_[next_pinned_], false)) return;
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
  if (ticket >= places_.size() || places_[ticket].state.load(std::memory_order_relaxed) != State::requested) {
    return make_error(ErrorCode::bad_argument, "ticket {} was not asked for", ticket);
  }
  const Status status = unpack(ticket);
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  places_[ticket].state.store(status ? State::ready : State::failed, std::memory_order_release);
  return status;
}

void Streamer::fail(std::uint32_t ticket) {
  if (ticket >= places_.size() || places_[ticket].state.load(std::memory_order_relaxed) != State::requested) return;
  in_flight_.fetch_sub(1, std::memory_order_relaxed);
  places_[ticket].state.store(State::failed, std::memory_order_release);
}

void Streamer::recover() {
  for (Place& place : places_) {
    if (place.state.load(std::memory_order_acquire) != State::failed) continue;
    if (!place.pinned) {
      slots_[place.slot].segment = kNone;
      place.slot = kNone;
    }
    place.state.store(State::absent, std::memory_order_relaxed);
  }
  next_pinned_ = 0;
}

Status Streamer::unpack(std::uint32_t segment) {
  const SegmentEntry& s = tables_.segments[segment];
  std::byte* at = raw(segment);
  const std::span<std::byte> bytes(at, s.raw_size);
  const std::uint64_t margin = in_place_margin(s.compression, s.stored_size);
  const std::span<const std::byte> stored =
      s.compression == Compression::none
          ? bytes
          : std::span<const std::byte>(at + s.raw_size + margin - s.stored_size, s.stored_size);
  if (const std::uint32_t crc = crc32(stored); crc != s.crc) {
    return make_error(ErrorCode::bad_checksum,
                      "segment {} ({} bytes at {}) has CRC-32 {:08x}, not the {:08x} that the file states", segment,
                      s.stored_size, s.offset, crc, s.crc);
  }
  if (s.compression != Compression::none) {
    QSF_TRY(decompress(s.compression, stored, bytes));
  }
  QSF_TRY(check_inline_headers(tables_.header, tables_.tensors, tables_.segments, segment, bytes));
  const TensorEntry* matrix = matrix_of(tables_, segment);
  if (!needs_tiling(matrix)) return {};
  const Format& format = *find_format(matrix->format);
  const std::uint64_t begin = data_begin(tables_, segment);
  const auto row = static_cast<std::size_t>(row_bytes(format, matrix->cols));
  std::uint64_t left = (s.raw_size - begin) / row;
  for (std::byte* strip = at + begin; left > 0; strip += kTileRows * row) {
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kTileRows));
    std::memcpy(strip_.data(), strip, n * row);
    tile_strip(format, strip_.first(n * row), n, matrix->cols, {strip, kTileRows * row});
    left -= n;
  }
  return {};
}

}  // namespace qsf
