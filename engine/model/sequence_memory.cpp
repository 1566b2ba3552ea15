#include "model/sequence_memory.h"

#include <algorithm>
#include <bitset>
#include <cstring>

#include "qsf/base/try.h"

namespace qsf {

Status SequenceMemory::init(Arena& arena, const Program& program, std::uint32_t dim, KvType type,
                            std::uint32_t n_sequences, std::uint32_t max_seq_len, std::uint32_t chunk,
                            const KvPolicy& policy, bool guesses, bool ahead) {
  type_ = type;
  program_ = &program;
  n_stages_ = program.head_stage() + 1;
  dim_ = dim;
  max_seq_len_ = max_seq_len;
  chunk_ = chunk;
  policy_ = policy;
  guesses_ = guesses;
  set_ = 0;
  const std::uint32_t sets = policy.window == 0 ? 1 : 2;  // the other one for shrink()
  QSF_TRY(arena.take(rings_, std::uint64_t{sets} * 2 * n_stages_, Region::tables));
  const Sizes sizes = lay_out(policy, arena.is_dry() ? std::span<Ring>() : set(0));
  chooses_ = sizes.chooses;
  slot_floats_ = sizes.slot_floats;
  scores_ = sizes.scores;
  sequence_bytes_ = used_[0] = sizes.sequence_bytes;
  QSF_TRY(arena.take(standings_, n_sequences, Region::tables));
  shared_ = n_sequences * sequence_bytes_;
  QSF_TRY(arena.take(memory_, shared_ + sizes.shared, Region::kv_cache));
  if (guesses && !arena.is_dry()) std::ranges::fill(memory_, std::byte{0});
  QSF_TRY(arena.take(states_, n_sequences * kSlots * slot_floats_, Region::kv_cache));
  return arena.take(ahead_, ahead ? sizes.most_floats : 0, Region::kv_cache);
}

SequenceMemory::Sizes SequenceMemory::lay_out(const KvPolicy& policy, std::span<Ring> rings) const {
  Sizes sizes;
  const KvForms forms = forms_of(type_);
  const auto need_of = [&](std::uint32_t s) {
    const LayerKind& kind = *program_->of_stage(s).kind;
    const bool is_idle = s == program_->guess_stage() && !guesses_;
    return is_idle ? MemoryNeed{} : mixer_row(kind.mixer).memory(kind, dim_);
  };
  std::bitset<kMaxLayers + 1> seen_by_others;
  for (std::uint32_t s = 1; s + 1 < n_stages_; ++s) {
    if (const MemoryNeed need = need_of(s); need.n_kv_heads != 0 && need.from != 0) seen_by_others.set(need.from);
  }
  // Keys of up to kTogether positions are stored before their queries attend, or those of a whole pass if another layer
  // reads this memory. A ring still has the window of the first of these queries.
  const auto ahead_of = [&](std::uint32_t s) {
    const std::uint32_t from = need_of(s).from;
    return seen_by_others[from != 0 ? from : s] ? std::max(chunk_, kTogether) : kTogether;
  };
  for (std::uint32_t s = 1; s + 1 < n_stages_; ++s) {
    const LayerKind& kind = *program_->of_stage(s).kind;
    const MemoryNeed need = need_of(s);
    const std::uint32_t owner = need.from != 0 ? need.from : s;
    Ring ring{};
    ring.state = sizes.slot_floats;
    ring.state_floats = need.state_floats;
    ring.own = owner == s;
    const bool evicts = need.window == 0 && !need.one_pass;  // a layer with a window is bounded by it
    ring.sees = evicts ? policy.window : need.window;
    ring.sees_first = evicts ? policy.sinks : 0;
    sizes.slot_floats += align_up(need.state_floats * sizeof(float)) / sizeof(float);
    sizes.most_floats = std::max(sizes.most_floats, need.state_floats);
    if (need.n_kv_heads != 0) {
      const std::uint64_t most = std::uint64_t{ring.sees} + ring.sees_first;
      const bool all = ring.sees == 0 || most >= max_seq_len_;
      ring.offset = need.one_pass ? kShared : sizes.sequence_bytes;
      ring.n_heads = need.n_kv_heads;
      ring.n_values = need.keys_only ? 0 : need.n_kv_heads;
      ring.capacity = all || need.one_pass
                          ? max_seq_len_
                          : static_cast<std::uint32_t>(std::min<std::uint64_t>(most + ahead_of(s) - 1, max_seq_len_));
      ring.window = std::min(all ? max_seq_len_ : ring.sees, ring.capacity);
      ring.first_kept = all ? 0 : ring.sees_first;
      if (evicts && !all && policy.choice != KvChoice::none) {
        ring.choice = policy.choice;
        ring.capacity = policy.window;
        ring.first_kept = policy.window / 2;
        ring.window = ring.capacity - ring.first_kept;
        sizes.chooses = true;
        ring.sums = sizes.sequence_bytes = align_up(sizes.sequence_bytes);
        sizes.sequence_bytes += std::uint64_t{ring.n_heads} * ring.capacity * sizeof(double);
        ring.offset = sizes.sequence_bytes;
      }
      ring.key_bytes = kv_bytes(forms.key, need.head_dim);
      ring.value_bytes = kv_bytes(forms.value, need.head_dim);
      sizes.scores = std::max(sizes.scores, std::uint64_t{kind.n_heads} * ring.capacity);
      const std::uint64_t bytes = ring.capacity * ring.bytes();
      if (need.one_pass) {
        sizes.shared = std::max(sizes.shared, bytes);
      } else if (owner == s) {
        sizes.sequence_bytes += bytes;
      }
    }
    Ring exact{};
    if (forms.rotates() && ring.capacity != 0 && !need.one_pass && (!evicts || policy.choice == KvChoice::none)) {
      exact = ring;
      exact.sees = ring.sees == 0 ? kExactLast : std::min(kExactLast, ring.sees);
      exact.sees_first = ring.sees == 0 ? kExactFirst : std::min(kExactFirst, ring.sees_first);
      exact.first_kept = exact.sees_first;
      exact.window = exact.sees;
      exact.capacity = std::min(exact.first_kept + exact.window + ahead_of(s) - 1, max_seq_len_);
      exact.first_kept = std::min(exact.first_kept, exact.capacity - 1);
      exact.key_bytes = exact.value_bytes = kv_bytes(KvForm::f16, need.head_dim);
      exact.state_floats = 0;
      exact.offset = sizes.sequence_bytes;
      if (owner == s) sizes.sequence_bytes += exact.capacity * exact.bytes();
    }
    if (rings.empty()) continue;
    for (const auto& [of, place] : {std::pair(ring, s), std::pair(exact, n_stages_ + s)}) {
      rings[place] = owner == s ? of : rings[place - s + owner];
      rings[place].own = owner == s;
      rings[place].saved = owner == s && s != program_->guess_stage();
    }
  }
  sizes.sequence_bytes = align_up(sizes.sequence_bytes);
  return sizes;
}

KvMemory SequenceMemory::memory(std::uint32_t sequence, const Ring& ring) const {
  const std::uint64_t at = ring.offset == kShared ? shared_ : sequence * sequence_bytes_ + ring.offset;
  KvMemory memory{.data = memory_.data() + at,
                  .n_heads = ring.n_heads,
                  .n_values = ring.n_values,
                  .capacity = ring.capacity,
                  .window = ring.window,
                  .first_kept = ring.first_kept,
                  .key_bytes = ring.key_bytes,
                  .value_bytes = ring.value_bytes};
  memory.choice = ring.choice;
  if (ring.choice != KvChoice::none) {
    memory.sums = reinterpret_cast<double*>(memory_.data() + sequence * sequence_bytes_ + ring.sums);
  }
  return memory;
}

StateMemory SequenceMemory::state(std::uint32_t sequence, std::uint32_t stage, bool guess) const {
  const Standing& standing = standings_[sequence];
  const std::uint64_t at = rings_of(sequence)[stage].state;
  const Slot& now = standing.now;
  float* const making = slot(sequence, standing.making) + at;
  if (guess) return {making, ahead_.data()};
  return {now.position == 0 ? nullptr : slot(sequence, now.index) + at, making};
}

void SequenceMemory::write(std::uint32_t sequence, std::uint32_t end) {
  Standing& standing = standings_[sequence];
  standing.high = std::max(standing.high, end);
  // Takes the slot that is neither the current one nor the checkpoint.
  standing.making = 0;
  while (standing.making == standing.now.index || standing.making == standing.checkpoint.index) ++standing.making;
}

void SequenceMemory::commit(std::uint32_t sequence, std::uint32_t position, bool keep) {
  Standing& standing = standings_[sequence];
  if (keep) standing.checkpoint = standing.now;
  standing.now = {standing.making, position};
}

/// Whether the window of a token at `position` is still in every ring. The token sees window - 1 earlier positions; a
/// ring keeps the first ones and the last ones ever written, `capacity` in total.
bool SequenceMemory::held(const Standing& standing, std::uint32_t position) const {
  if (chooses_) return position == standing.high;
  return position >= standing.low && std::ranges::all_of(set(standing.set), [&](const Ring& ring) {
           return ring.capacity == 0 || standing.high <= ring.capacity ||
                  position + ring.capacity >= standing.high + ring.first_kept + ring.window - 1;
         });
}

std::uint32_t SequenceMemory::reach(std::uint32_t sequence, std::uint32_t position) const {
  const Standing& standing = standings_[sequence];
  if (slot_floats_ != 0 && position != standing.now.position) {
    const std::uint32_t now = standing.now.position, checkpoint = standing.checkpoint.position;
    position = now < position ? now : checkpoint <= position ? checkpoint : 0;
  }
  return held(standing, position) ? position : 0;
}

std::uint32_t SequenceMemory::rewind(std::uint32_t sequence, std::uint32_t position) {
  Standing& standing = standings_[sequence];
  position = reach(sequence, position);
  if (position == 0) {
    standing.high = standing.low = 0;
    standing.now.position = standing.checkpoint.position = 0;
  } else if (slot_floats_ != 0 && position != standing.now.position) {
    standing.now = standing.checkpoint;
  }
  return position;
}

Snapshot SequenceMemory::snapshot(std::uint32_t sequence, std::uint32_t position) const {
  const Standing& standing = standings_[sequence];
  if (position == 0) return {};
  Snapshot snapshot{position, position, 0};
  const std::uint32_t least = position - std::min(position, kGoBack);
  while (snapshot.from > least && held(standing, snapshot.from - 1)) --snapshot.from;
  const std::uint32_t checkpoint = standing.checkpoint.position;
  if (slot_floats_ != 0 && checkpoint != 0 && checkpoint < position && held(standing, checkpoint)) {
    snapshot.checkpoint = checkpoint;
    snapshot.from = std::min(snapshot.from, checkpoint);
  }
  const bool is_whole = std::ranges::all_of(rings(), [&](const Ring& ring) { return ring.first(snapshot.from) == 0; });
  if (is_whole) snapshot.from = 0;
  return snapshot;
}

bool SequenceMemory::is_possible(const Snapshot& snapshot) const {
  if (snapshot.from > snapshot.position) return false;
  if (snapshot.checkpoint == 0) return true;
  return slot_floats_ != 0 && snapshot.from <= snapshot.checkpoint && snapshot.checkpoint < snapshot.position;
}

std::uint64_t SequenceMemory::position_bytes(const Snapshot& snapshot) const {
  std::uint64_t bytes = 0;
  for (const Ring& ring : rings()) {
    const std::uint32_t first = ring.first(snapshot.from);
    const std::uint32_t n = ring.saved ? ring.kept(snapshot.from) + snapshot.position - first : 0;
    bytes += n * ring.bytes();
  }
  return bytes;
}

std::uint64_t SequenceMemory::state_bytes(const Snapshot& snapshot) const {
  std::uint64_t floats = 0;
  for (const Ring& ring : rings()) floats += ring.saved ? ring.state_floats : 0;
  return floats * sizeof(float) * ((snapshot.position != 0 ? 1 : 0) + (snapshot.checkpoint != 0 ? 1 : 0));
}

MemoryPieces SequenceMemory::pieces(std::uint32_t sequence, const Snapshot& snapshot) const {
  const Standing& standing = standings_[sequence];
  const bool is_now = standing.now.position == snapshot.position;
  return {*this, sequence, snapshot, is_now ? standing.now.index : standing.checkpoint.index,
          standing.checkpoint.index};
}

MemoryPieces SequenceMemory::prepare(std::uint32_t sequence, const Snapshot& snapshot) {
  Standing& standing = standings_[sequence];
  const std::uint8_t set = standing.set;
  standing = {};
  standing.set = set;
  standing.checkpoint.index = 1;
  return {*this, sequence, snapshot, standing.now.index, standing.checkpoint.index};
}

void SequenceMemory::settle(std::uint32_t sequence, const Snapshot& snapshot) {
  Standing& standing = standings_[sequence];
  standing.high = snapshot.position;
  standing.low = snapshot.from;
  standing.now.position = snapshot.position;
  standing.checkpoint.position = snapshot.checkpoint;
}

void SequenceMemory::copy(std::uint32_t from, std::uint32_t to, const Snapshot& snapshot) {
  MemoryPieces source = pieces(from, snapshot), target = prepare(to, snapshot);
  for (MemoryPieces::Piece piece = source.next(); piece.size != 0; piece = source.next()) {
    std::memcpy(target.next().data, piece.data, piece.size);  // the rings are alike, so the pieces are
  }
  settle(to, snapshot);
}

MemoryPieces::Piece MemoryPieces::next() {
  Piece piece{};
  if (part_ == Part::positions) piece = next_positions();
  if (part_ == Part::states && piece.size == 0) piece = next_state(slots_[0]);
  if (part_ == Part::checkpoint && piece.size == 0) piece = next_state(slots_[1]);
  return piece;
}

MemoryPieces::Piece MemoryPieces::next_positions() {
  const std::span<const SequenceMemory::Ring> rings = memory_->rings_of(sequence_);
  for (; stage_ < rings.size(); ++stage_, head_ = 0) {
    const SequenceMemory::Ring& ring = rings[stage_];
    const std::uint32_t first = ring.first(snapshot_.from), kept = ring.kept(snapshot_.from);
    const std::uint32_t n = kept + snapshot_.position - first, in_turn = ring.capacity - ring.first_kept;
    if (!ring.saved || n == 0) continue;
    for (; head_ < ring.rows(); ++head_, done_ = 0) {
      if (done_ == n) continue;
      const std::uint32_t at = done_ < kept ? done_ : first - kept + done_, left = n - done_;
      // A run ends with the positions that stay, where the ring does, and with those that the ring does not keep.
      const bool stays = done_ < kept || at < ring.first_kept, is_kept = stays || left <= in_turn;
      std::uint32_t run = left - in_turn;
      if (stays) {
        run = done_ < kept ? kept - done_ : std::min(left, ring.first_kept - at);
      } else if (is_kept) {
        run = std::min(left, in_turn - (at - ring.first_kept) % in_turn);
      }
      done_ += run;
      const KvMemory memory = memory_->memory(sequence_, ring);
      const bool is_key = head_ < ring.n_heads;
      std::byte* const data = is_key ? memory.key(head_, at) : memory.value(head_ - ring.n_heads, at);
      return {is_kept ? data : nullptr, std::size_t{run} * (is_key ? ring.key_bytes : ring.value_bytes)};
    }
  }
  stage_ = 1;
  part_ = Part::states;
  return {};
}

MemoryPieces::Piece MemoryPieces::next_state(std::uint8_t slot) {
  const std::span<const SequenceMemory::Ring> rings = memory_->rings_of(sequence_);
  while (stage_ < rings.size()) {
    const SequenceMemory::Ring& ring = rings[stage_++];
    if (!ring.saved || ring.state_floats == 0) continue;
    float* const state = memory_->slot(sequence_, slot) + ring.state;
    return {reinterpret_cast<std::byte*>(state), static_cast<std::size_t>(ring.state_floats) * sizeof(float)};
  }
  stage_ = 1;
  part_ = part_ == Part::states && snapshot_.checkpoint != 0 ? Part::checkpoint : Part::end;
  return {};
}

}  // namespace qsf
