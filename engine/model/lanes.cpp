#include "model/lanes.h"

#include <algorithm>

#include "qsf/base/try.h"

namespace qsf {

Status Lanes::init(Arena& arena, const Program& program, KvType type, std::uint32_t n_sequences,
                   std::uint32_t max_seq_len) {
  type_ = type;
  sequence_bytes_ = scores_ = 0;
  const std::uint32_t n_sections = program.head_section() + 1;
  QSF_TRY(arena.take(rings_, n_sections, Region::tables));
  for (std::uint32_t s = 1; s + 1 < n_sections; ++s) {
    const LayerKind& kind = *program.of_section(s).kind;
    const LaneNeed need = mixer_row(kind.mixer).lane(kind);
    if (need.n_kv_heads == 0) continue;
    // As far back as the oldest of kTogether queries sees.
    const bool all = need.window == 0 || need.window >= max_seq_len;
    Ring ring;
    ring.offset = sequence_bytes_;
    ring.n_heads = need.n_kv_heads;
    ring.capacity = all ? max_seq_len : std::min(need.window + kTogether - 1, max_seq_len);
    ring.window = std::min(all ? max_seq_len : need.window, ring.capacity);
    ring.position_bytes = kv_bytes(type, need.head_dim);
    sequence_bytes_ += 2ull * ring.n_heads * ring.capacity * ring.position_bytes;
    scores_ = std::max(scores_, std::uint64_t{kind.n_heads} * ring.capacity);
    if (!arena.is_dry()) rings_[s] = ring;
  }
  sequence_bytes_ = align_up(sequence_bytes_);
  QSF_TRY(arena.take(highs_, n_sequences, Region::tables));
  return arena.take(memory_, n_sequences * sequence_bytes_, Region::lanes);
}

KvLane Lanes::kv(std::uint32_t sequence, std::uint32_t section) const {
  const Ring& ring = rings_[section];
  return {memory_.data() + sequence * sequence_bytes_ + ring.offset, ring.n_heads, ring.capacity, ring.window,
          ring.position_bytes};
}

void Lanes::write(std::uint32_t sequence, std::uint32_t end) { highs_[sequence] = std::max(highs_[sequence], end); }

std::uint32_t Lanes::rewind(std::uint32_t sequence, std::uint32_t position) {
  std::uint32_t& high = highs_[sequence];
  // A token at `position` sees window - 1 before it; a ring holds the last `capacity` of those ever written.
  const bool held = std::ranges::all_of(rings_, [&](const Ring& ring) {
    return ring.capacity == 0 || high <= ring.capacity || position + ring.capacity >= high + ring.window - 1;
  });
  if (!held) position = 0;
  if (position == 0) high = 0;
  return position;
}

}  // namespace qsf
