// The loop that all byte pair encodings share. It merges neighbours, the best pair first, and of equal pairs the
// leftmost. A tournament tree over the pairs' keys finds the best pair in O(log n), so that a run of n bytes takes O(n
// log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace qsf {

inline constexpr std::uint32_t kNoMerge = 0xffffffffu;

/// The symbols of a run of n bytes. The index of a symbol is that of its first byte.
struct MergeRun {
  std::uint32_t* ids;   // [n] token of a symbol, if the rules have one
  std::uint32_t* keys;  // [n] key of the pair that begins with a symbol; kNoMerge: no pair
  std::uint16_t* next;  // [n] the next symbol, or n
  std::uint16_t* prev;  // [n]
  std::uint16_t* tree;  // [n] winners
  std::uint32_t n = 0;
};
inline constexpr std::size_t kMergeBytesPerByte = 2 * sizeof(std::uint32_t) + 3 * sizeof(std::uint16_t);

namespace merge_detail {

constexpr std::uint32_t winner(const MergeRun& run, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t key_a = run.keys[a], key_b = run.keys[b];
  return key_a < key_b || (key_a == key_b && a < b) ? a : b;
}
constexpr std::uint32_t child(const MergeRun& run, std::uint32_t node) {
  return node >= run.n ? node - run.n : run.tree[node];
}
inline void update(MergeRun& run, std::uint32_t at, std::uint32_t key) {
  if (run.keys[at] == key) return;
  run.keys[at] = key;
  for (std::uint32_t node = (run.n + at) / 2; node > 0; node /= 2) {
    run.tree[node] = static_cast<std::uint16_t>(winner(run, child(run, 2 * node), child(run, 2 * node + 1)));
  }
}

}  // namespace merge_detail

/// Merges all pairs of a run. rules.key(left, right) returns the key of two neighbouring symbols, of which the smallest
/// is merged first, or kNoMerge. rules.join(left, right) is called before `right` becomes a part of `left`. The caller
/// sets `next` and `prev` for n >= 1 bytes; bytes that begin no symbol are not linked.
template <class Rules>
void merge_all(MergeRun& run, Rules& rules) {
  const std::uint32_t n = run.n;
  if (n < 2) return;
  const auto key = [&](std::uint32_t at) { return run.next[at] == n ? kNoMerge : rules.key(at, run.next[at]); };
  for (std::uint32_t i = 0; i < n; ++i) run.keys[i] = kNoMerge;
  for (std::uint32_t i = 0; i < n; i = run.next[i]) run.keys[i] = key(i);
  for (std::uint32_t node = n - 1; node > 0; --node) {
    using namespace merge_detail;
    run.tree[node] = static_cast<std::uint16_t>(winner(run, child(run, 2 * node), child(run, 2 * node + 1)));
  }
  while (true) {
    const std::uint32_t left = run.tree[1];
    if (run.keys[left] == kNoMerge) return;
    const std::uint32_t right = run.next[left];
    rules.join(left, right);
    run.next[left] = run.next[right];
    if (run.next[right] != n) run.prev[run.next[right]] = static_cast<std::uint16_t>(left);
    merge_detail::update(run, right, kNoMerge);
    merge_detail::update(run, left, key(left));
    if (left != 0) merge_detail::update(run, run.prev[left], key(run.prev[left]));
  }
}

}  // namespace qsf
