// A policy that keeps fewer positions than before: the memory of each sequence moves together, and its end is free.
#include <algorithm>
#include <cstring>

#include "model/sequence_memory.h"

namespace qsf {
namespace {

/// One head's keys, values or sums: where they are, where they go, and the bytes of a slot.
struct Row {
  std::byte* from;
  std::byte* to;  // at most `from`
  std::size_t bytes;
};

/// Rotates n slots, so that slot `first` becomes the first one.
void rotate_slots(std::byte* slots, std::size_t n, std::size_t first, std::size_t bytes) {
  std::rotate(slots, slots + first * bytes, slots + n * bytes);
}

}  // namespace

std::span<std::byte> SequenceMemory::unused(std::uint32_t sequence) const {
  const std::uint64_t used = used_[standings_[sequence].set];
  return memory_.subspan(static_cast<std::size_t>(sequence * sequence_bytes_ + used),
                         static_cast<std::size_t>(sequence_bytes_ - used));
}

bool SequenceMemory::shrink(std::uint32_t window) {
  const auto has_moved = [&](const Standing& standing) { return standing.set == set_; };
  if (window < policy_.window && std::ranges::all_of(standings_, has_moved)) {
    set_ ^= 1;
    policy_.window = window;
    used_[set_] = lay_out(policy_, set(set_)).sequence_bytes;
  }
  for (std::uint32_t i = 0; i < standings_.size(); ++i) {
    if (has_moved(standings_[i]) || !may_move(standings_[i])) continue;
    move(i, rings_of(i), rings());
    standings_[i].set = set_;
  }
  return window >= policy_.window && std::ranges::all_of(standings_, has_moved);
}

/// Whether all rings of a sequence can evict. SnapKV's have all sums that it chooses by once their slots are full, and
/// evict nothing while they begin to fill.
bool SequenceMemory::may_move(const Standing& standing) const {
  const std::span<const Ring> from = set(standing.set), to = rings();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Ring& ring = from[i];
    if (ring.choice != KvChoice::snapkv || standing.high <= to[i].capacity - observed_of(to[i].capacity)) continue;
    const std::uint32_t in_turn = ring.capacity - ring.first_kept;
    if (standing.high < ring.capacity || (standing.high - ring.first_kept) % in_turn != 0) return false;
  }
  return true;
}

/// Moves rings in the order of memory, so that each ends before the next one begins.
void SequenceMemory::move(std::uint32_t sequence, std::span<const Ring> from, std::span<const Ring> to) {
  for (std::size_t stage = 0; stage < n_stages_; ++stage) {
    move(sequence, from[stage], to[stage]);
    move(sequence, from[n_stages_ + stage], to[n_stages_ + stage]);
  }
}

void SequenceMemory::move(std::uint32_t sequence, const Ring& old, const Ring& now) {
  if (!old.own || old.capacity == 0 || old.offset == kShared) return;
  const std::uint32_t high = standings_[sequence].high;
  const KvMemory source = memory(sequence, old), target = memory(sequence, now);
  const std::uint32_t in_turn = old.capacity - old.first_kept, in_turn_now = now.capacity - now.first_kept;
  std::uint32_t n = std::min(high, old.capacity);
  // Returns the rows of a head, sums first.
  const auto rows_of = [&](std::uint32_t head) {
    std::array<Row, 3> rows{};
    std::size_t k = 0;
    if (old.choice != KvChoice::none) {
      rows[k++] = {reinterpret_cast<std::byte*>(source.sums_of(head).data()),
                   reinterpret_cast<std::byte*>(target.sums_of(head).data()), sizeof(double)};
    }
    rows[k++] = {source.keys(head), target.keys(head), source.key_bytes};
    if (old.n_values != 0) rows[k] = {source.values(head), target.values(head), source.value_bytes};
    return rows;
  };
  // Slots in the order of positions, after those that stay or are chosen.
  for (std::uint32_t head = 0; head < old.n_heads && high > old.capacity; ++head) {
    for (const Row& row : rows_of(head)) {
      if (row.bytes == 0) continue;
      rotate_slots(row.from + old.first_kept * row.bytes, in_turn, (high - old.first_kept) % in_turn, row.bytes);
    }
  }
  // Slots [0, stays) and [begin, n) are kept.
  std::uint32_t stays = std::min(now.first_kept, n), begin = std::max(stays, n - std::min(n, in_turn_now));
  const std::uint32_t observed = observed_of(now.capacity);
  if (old.choice == KvChoice::snapkv && n > now.capacity - observed) {
    const std::uint32_t rest = (high - now.first_kept) % in_turn_now, recent = rest == 0 ? in_turn_now : rest;
    stays = now.first_kept + recent;
    begin = n;
    for (std::uint32_t head = 0; head < old.n_heads; ++head) {
      choose_observed(source, head, stays, std::max(recent, observed));
    }
  } else if (old.choice == KvChoice::h2o && begin > stays) {
    for (std::uint32_t head = 0; head < old.n_heads; ++head) choose_largest(source, head, begin, stays);
    n -= begin - stays;
    begin = stays;
  }
  const bool is_full = n - begin == in_turn_now;
  const std::uint32_t turn = is_full ? (high - now.first_kept) % in_turn_now : 0;
  const auto move_row = [&](const Row& row) {
    std::memmove(row.to, row.from, stays * row.bytes);
    std::byte* const slots = row.to + stays * row.bytes;
    std::memmove(slots, row.from + begin * row.bytes, (n - begin) * row.bytes);
    if (turn != 0) rotate_slots(slots, in_turn_now, in_turn_now - turn, row.bytes);
  };
  // The order of memory: all sums, all keys, all values.
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::uint32_t head = 0; head < old.n_heads; ++head) {
      if (const Row row = rows_of(head)[k]; row.bytes != 0) move_row(row);
    }
  }
}

}  // namespace qsf
