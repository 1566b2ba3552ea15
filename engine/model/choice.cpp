#include "model/choice.h"

#include <bit>
#include <cstring>
#include <span>

#include "model/sequence_memory.h"

namespace qsf {
namespace {

constexpr std::size_t kNeighbours = 3;  // on each side

void move_slot(const KvMemory& memory, std::uint32_t head, std::size_t from, std::size_t to) {
  const auto move = [&](std::byte* all, std::size_t bytes) {
    std::memcpy(all + to * bytes, all + from * bytes, bytes);
  };
  move(memory.keys(head), memory.key_bytes);
  if (memory.n_values != 0) move(memory.values(head), memory.value_bytes);
}

/// Replaces each sum by that of its neighbours and its own, in ascending order.
void pool(std::span<double> sums) {
  double before[kNeighbours] = {};  // as they were
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double pooled = 0;
    for (const double sum : before) pooled += sum;
    const std::size_t end = std::min(i + kNeighbours + 1, sums.size());
    for (std::size_t j = i; j < end; ++j) pooled += sums[j];
    std::copy(before + 1, before + kNeighbours, before);
    before[kNeighbours - 1] = sums[i];
    sums[i] = pooled;
  }
}

/// Returns the largest number that at least n of the sums reach. Numbers that are not negative order as their bits.
double least_of_largest(std::span<const double> sums, std::size_t n) {
  std::uint64_t least = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 62; bit != 0; bit >>= 1) {
    const std::uint64_t larger = least | bit;
    const auto reaches = [&](double sum) { return std::bit_cast<std::uint64_t>(sum) >= larger; };
    if (static_cast<std::size_t>(std::ranges::count_if(sums, reaches)) >= n) least = larger;
  }
  return std::bit_cast<double>(least);
}

void choose_by_window(const KvMemory& memory, std::uint32_t head) {
  choose_observed(memory, head, memory.first_kept, observed_of(memory.capacity));
}

}  // namespace

void make_room(const KvMemory& memory, std::uint32_t head, std::uint32_t position) {
  const std::span<double> sums = memory.sums_of(head);
  const std::uint32_t slot = memory.slot(position);
  if (memory.choice == KvChoice::snapkv) {
    if (position >= memory.capacity && slot == memory.first_kept) choose_by_window(memory, head);
    if (slot == memory.capacity - observed_of(memory.capacity)) std::ranges::fill(sums, 0.0);
    return;
  }
  if (position >= memory.capacity) {
    const auto least = std::ranges::min_element(sums.first(memory.first_kept));
    if (sums[slot] > *least) {
      move_slot(memory, head, slot, static_cast<std::size_t>(least - sums.begin()));
      *least = sums[slot];
    }
  }
  sums[slot] = 0;
}

void choose_largest(const KvMemory& memory, std::uint32_t head, std::uint32_t n, std::uint32_t stays) {
  const std::span<double> sums = memory.sums_of(head);
  const double limit = least_of_largest(sums.first(n), stays);
  const auto above =
      static_cast<std::uint32_t>(std::ranges::count_if(sums.first(n), [&](double s) { return s > limit; }));
  std::uint32_t equal = stays - above, to = 0;
  for (std::uint32_t from = 0; from < memory.capacity; ++from) {
    const bool is_larger = from >= n || sums[from] > limit;
    const bool is_equal = !is_larger && sums[from] == limit && equal > 0;
    if (is_equal) --equal;
    if (!is_larger && !is_equal) continue;
    if (to != from) move_slot(memory, head, from, to);
    sums[to++] = sums[from];
  }
}

void choose_observed(const KvMemory& memory, std::uint32_t head, std::uint32_t stays, std::uint32_t last) {
  const std::uint32_t prefix = memory.capacity - last;
  pool(memory.sums_of(head).first(prefix));
  choose_largest(memory, head, prefix, stays - last);
}

void add_weights(const KvMemory& memory, std::uint32_t head, std::uint32_t position, const AttendArgs& args) {
  const std::span<double> sums = memory.sums_of(head);
  const float* weights = args.scores;
  for (std::uint32_t t = 0; t < args.n_positions; ++t) {
    const std::uint32_t n = args.n_seen(t), first = position + t + 1 - n;
    const bool counts =
        memory.choice == KvChoice::h2o || memory.slot(position + t) >= memory.capacity - observed_of(memory.capacity);
    for (std::uint32_t h = 0; h < args.n_heads; ++h, weights += args.most_seen()) {
      if (!counts) continue;
      // SnapKV's slots are in the order of weights. So are H2O's, after the chosen ones, but they begin anywhere.
      for (std::uint32_t i = 0; i < n; ++i) {
        const bool in_turn = memory.choice == KvChoice::h2o && i >= memory.first_kept;
        sums[in_turn ? memory.slot(first + i) : i] += double{weights[i]};
      }
    }
  }
}

}  // namespace qsf
