// What layers keep of the sequences: a lane per layer and sequence. A lane of attention is a ring of the positions that
// its window still sees; a lane of a recurrence is a state that every position changes. Which positions are kept, and
// how far a sequence can go back, is decided here alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/program.h"
#include "qsf/formats/kv.h"

namespace qsf {

/// Tokens of one sequence that share the reading of its lane, at most, where that is a window's or a state.
inline constexpr std::uint32_t kTogether = 16;

/// Keys and values of one layer and sequence: [2, n_heads, capacity, position_bytes].
struct KvLane {
  std::byte* data = nullptr;
  std::uint32_t n_heads = 0, capacity = 0;
  std::uint32_t window = 0;  // positions that a token sees, at most `capacity`
  std::size_t position_bytes = 0;

  std::byte* keys(std::uint32_t head) const { return data + std::size_t{head} * capacity * position_bytes; }
  std::byte* values(std::uint32_t head) const { return keys(n_heads + head); }
  /// Where a position lies within a head's.
  std::size_t place(std::uint32_t position) const { return position % capacity * position_bytes; }
};

/// A layer's state of one sequence in a pass: what it was before the pass, null at position 0, and where it is made.
struct StateLane {
  const float* before = nullptr;
  float* now = nullptr;
};

class Lanes {
 public:
  /// `chunk`: columns of a pass, at most.
  Status init(Arena& arena, const Program& program, std::uint32_t dim, KvType type, std::uint32_t n_sequences,
              std::uint32_t max_seq_len, std::uint32_t chunk = kTogether);

  KvType type() const { return type_; }
  KvLane kv(std::uint32_t sequence, std::uint32_t section) const;
  StateLane state(std::uint32_t sequence, std::uint32_t section) const;
  /// Floats of scores that attention over any lane takes, for one token.
  std::uint64_t scores() const { return scores_; }

  /// A pass is about to write positions up to `end`.
  void write(std::uint32_t sequence, std::uint32_t end);
  /// The pass is done, and the sequence stands at `position`. Without this it stands where it did. `keep`: what stood
  /// before the pass is the checkpoint.
  void commit(std::uint32_t sequence, std::uint32_t position, bool keep);
  /// The sequence is to go on at `position` or before: where it can. A state can be gone back to where the sequence
  /// stands and at its checkpoint, a ring not behind what later positions have overwritten; where neither does, the
  /// sequence begins anew, from position 0.
  std::uint32_t rewind(std::uint32_t sequence, std::uint32_t position);

 private:
  static constexpr std::uint64_t kShared = ~std::uint64_t{0};
  struct Ring {
    std::uint64_t offset;  // in a sequence's bytes; kShared: in what layers and sequences take turns in
    std::uint32_t n_heads, capacity, window;
    std::uint32_t position_bytes;
    std::uint64_t state;  // in a slot's floats
  };
  /// All states of a sequence lie in a slot: one where it stands, one that a pass makes, one for the checkpoint.
  static constexpr std::uint8_t kSlots = 3;
  struct Slot {
    std::uint8_t index = 0;
    std::uint32_t position = 0;  // 0: the slot holds nothing
  };
  struct Standing {
    std::uint32_t high = 0;  // positions ever written since the sequence was begun
    Slot now, checkpoint;
    std::uint8_t making = 0;
  };

  float* slot(std::uint32_t sequence, std::uint8_t index) const {
    return states_.data() + (std::size_t{sequence} * kSlots + index) * slot_floats_;
  }
  bool held(const Standing& standing, std::uint32_t position) const;

  std::span<Ring> rings_;          // [n_layers + 2] by section
  std::span<Standing> standings_;  // [n_sequences]
  std::span<std::byte> memory_;    // [n_sequences, sequence_bytes_], then the shared one
  std::span<float> states_;        // [n_sequences, kSlots, slot_floats_]
  std::uint64_t sequence_bytes_ = 0, shared_ = 0, slot_floats_ = 0, scores_ = 0;
  KvType type_ = KvType::f16;
};

}  // namespace qsf
