#include "model/lanes.h"

#include <algorithm>
#include <bitset>

#include "qsf/base/try.h"

namespace qsf {

Status Lanes::init(Arena& arena, const Program& program, std::uint32_t dim, KvType type, std::uint32_t n_sequences,
                   std::uint32_t max_seq_len, std::uint32_t chunk) {
  type_ = type;
  sequence_bytes_ = slot_floats_ = scores_ = 0;
  std::uint64_t shared = 0;
  const std::uint32_t n_sections = program.head_section() + 1;
  QSF_TRY(arena.take(rings_, n_sections, Region::tables));
  const auto need_of = [&](std::uint32_t s) {
    const LayerKind& kind = *program.of_section(s).kind;
    return mixer_row(kind.mixer).lane(kind, dim);
  };
  std::bitset<kMaxLayers + 1> seen_by_others;
  for (std::uint32_t s = 1; s + 1 < n_sections; ++s) {
    if (const LaneNeed need = need_of(s); need.n_kv_heads != 0 && need.from != 0) seen_by_others.set(need.from);
  }
  for (std::uint32_t s = 1; s + 1 < n_sections; ++s) {
    const LayerKind& kind = *program.of_section(s).kind;
    const LaneNeed need = need_of(s);
    const std::uint32_t owner = need.from != 0 ? need.from : s;
    Ring ring{};
    ring.state = slot_floats_;
    slot_floats_ += align_up(need.state_floats * sizeof(float)) / sizeof(float);
    if (need.n_kv_heads != 0) {
      // Keys of up to kTogether positions are stored before their queries attend, or those of a whole pass if another
      // layer reads this memory. The ring still has the window of the first of these queries.
      const bool all = need.window == 0 || need.window >= max_seq_len;
      const std::uint32_t ahead = seen_by_others[owner] ? std::max(chunk, kTogether) : kTogether;
      ring.offset = need.one_pass ? kShared : sequence_bytes_;
      ring.n_heads = need.n_kv_heads;
      ring.capacity = all || need.one_pass ? max_seq_len : std::min(need.window + ahead - 1, max_seq_len);
      ring.window = std::min(all ? max_seq_len : need.window, ring.capacity);
      ring.position_bytes = kv_bytes(type, need.head_dim);
      scores_ = std::max(scores_, std::uint64_t{kind.n_heads} * ring.capacity);
      const std::uint64_t bytes = 2ull * ring.n_heads * ring.capacity * ring.position_bytes;
      if (need.one_pass) {
        shared = std::max(shared, bytes);
      } else if (owner == s) {
        sequence_bytes_ += bytes;
      }
    }
    if (!arena.is_dry()) rings_[s] = owner == s ? ring : rings_[owner];
  }
  sequence_bytes_ = align_up(sequence_bytes_);
  QSF_TRY(arena.take(standings_, n_sequences, Region::tables));
  shared_ = n_sequences * sequence_bytes_;
  QSF_TRY(arena.take(memory_, shared_ + shared, Region::lanes));
  return arena.take(states_, n_sequences * kSlots * slot_floats_, Region::lanes);
}

KvLane Lanes::kv(std::uint32_t sequence, std::uint32_t section) const {
  const Ring& ring = rings_[section];
  const std::uint64_t at = ring.offset == kShared ? shared_ : sequence * sequence_bytes_ + ring.offset;
  return {memory_.data() + at, ring.n_heads, ring.capacity, ring.window, ring.position_bytes};
}

StateLane Lanes::state(std::uint32_t sequence, std::uint32_t section) const {
  const Standing& standing = standings_[sequence];
  const std::uint64_t at = rings_[section].state;
  const Slot& now = standing.now;
  return {now.position == 0 ? nullptr : slot(sequence, now.index) + at, slot(sequence, standing.making) + at};
}

void Lanes::write(std::uint32_t sequence, std::uint32_t end) {
  Standing& standing = standings_[sequence];
  standing.high = std::max(standing.high, end);
  // Takes the slot that is neither the current one nor the checkpoint.
  standing.making = 0;
  while (standing.making == standing.now.index || standing.making == standing.checkpoint.index) ++standing.making;
}

void Lanes::commit(std::uint32_t sequence, std::uint32_t position, bool keep) {
  Standing& standing = standings_[sequence];
  if (keep) standing.checkpoint = standing.now;
  standing.now = {standing.making, position};
}

/// Whether the window of a token at `position` is still in every ring. The token sees window - 1 earlier positions; a
/// ring keeps the last `capacity` positions ever written.
bool Lanes::held(const Standing& standing, std::uint32_t position) const {
  return std::ranges::all_of(rings_, [&](const Ring& ring) {
    return ring.capacity == 0 || standing.high <= ring.capacity ||
           position + ring.capacity >= standing.high + ring.window - 1;
  });
}

std::uint32_t Lanes::rewind(std::uint32_t sequence, std::uint32_t position) {
  Standing& standing = standings_[sequence];
  if (slot_floats_ != 0 && position != standing.now.position) {
    const bool kept = standing.checkpoint.position != 0 && standing.checkpoint.position <= position;
    position = kept ? standing.checkpoint.position : 0;
    if (kept) standing.now = standing.checkpoint;
  }
  if (!held(standing, position)) position = 0;
  if (position == 0) {
    standing.high = 0;
    standing.now.position = standing.checkpoint.position = 0;
  }
  return position;
}

}  // namespace qsf
