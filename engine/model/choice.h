// The positions that attention chooses to keep. The first half of a memory's slots has chosen positions, and the second
// half has the last ones in turn.
//
// H2O (Zhang et al., 2023): the sums of all attention to a position decide. A position that leaves the second half
// takes the slot of the chosen one with the smallest sum, if its own is larger.
//
// SnapKV (Li et al., 2024): whenever all slots are taken, the text so far is the paper's prompt. The last positions,
// the observation window, stay. Another position stays if its attention from that window, summed over a few neighbours,
// is among the largest. Together they are the first half, in the order of positions.
//
// Each KV head chooses by the weights of all its query heads. A choice depends on the tokens only, not on passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernels.h"

namespace qsf {

struct KvMemory;

enum class KvChoice : std::uint8_t { none, h2o, snapkv };

/// The fewest positions among which attention can choose.
inline constexpr std::uint32_t kFewestChosen = 16;

/// Returns the positions of SnapKV's observation window.
constexpr std::uint32_t observed_of(std::uint32_t capacity) { return std::min(32u, capacity / 4); }

/// Prepares the slot of a position in the memory of a KV head, before its key and value are stored.
void make_room(const KvMemory& memory, std::uint32_t head, std::uint32_t position);

/// Moves the `stays` slots of the first n with the largest sums to the first slots, and all slots from n on after them,
/// in their order, with their sums. Of equal sums the earliest slots stay.
void choose_largest(const KvMemory& memory, std::uint32_t head, std::uint32_t n, std::uint32_t stays);
/// Of full slots, keeps the `last` ones, and of the others those with the largest pooled sums, which then are their
/// sums: `stays` in total, in their order.
void choose_observed(const KvMemory& memory, std::uint32_t head, std::uint32_t stays, std::uint32_t last);

/// Adds the weights that attention left in args.scores to the sums of a KV head. `position` is that of the first query.
void add_weights(const KvMemory& memory, std::uint32_t head, std::uint32_t position, const AttendArgs& args);

}  // namespace qsf
