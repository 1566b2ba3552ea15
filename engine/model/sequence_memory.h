// The memory of sequences in layers. Attention has a ring of the positions that its window still sees; a recurrence has
// a state that every position changes. This file alone decides which positions are kept and how far a sequence can go
// back.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/choice.h"
#include "model/program.h"
#include "qsf/formats/kv.h"

namespace qsf {

/// The most tokens of one sequence that share a read of its memory, if that is a window's ring or a state.
inline constexpr std::uint32_t kTogether = 16;

/// The most positions before its own to which a snapshot lets a sequence go back if it has windows.
inline constexpr std::uint32_t kGoBack = 16;

/// The positions that layers also keep in f16 if keys or values have rotated forms: the last ones, and the first ones
/// if no window leaves them.
inline constexpr std::uint32_t kExactLast = 64;
inline constexpr std::uint32_t kExactFirst = 4;

/// The positions that layers without a window of their own keep: the last ones and the first ones, or those that
/// attention chooses.
struct KvPolicy {
  std::uint32_t window = 0;  // 0: all
  std::uint32_t sinks = 0;   // in addition
  KvChoice choice = KvChoice::none;
};

/// Keys and values of one layer and sequence: [n_heads, capacity, key_bytes], then [n_values, capacity, value_bytes].
/// The first positions have slots of their own, and the others the rest in turn.
struct KvMemory {
  std::byte* data = nullptr;
  std::uint32_t n_heads = 0;
  std::uint32_t n_values = 0;  // n_heads, or 0 if values begin their keys
  std::uint32_t capacity = 0;
  std::uint32_t window = 0;                    // positions that a token sees after the first ones, at most `capacity`
  std::uint32_t first_kept = 0;                // slots of positions that stay or are chosen, fewer than `capacity`
  std::size_t key_bytes = 0, value_bytes = 0;  // of a position
  KvChoice choice = KvChoice::none;
  double* sums = nullptr;  // [n_heads, capacity] of attention to each slot, if there is a choice

  std::byte* keys(std::uint32_t head) const { return data + std::size_t{head} * capacity * key_bytes; }
  std::byte* values(std::uint32_t head) const {
    return n_values == 0 ? keys(head) : keys(n_heads) + std::size_t{head} * capacity * value_bytes;
  }
  std::uint32_t slot(std::uint32_t position) const {
    return position < first_kept ? position : first_kept + (position - first_kept) % (capacity - first_kept);
  }
  std::byte* key(std::uint32_t head, std::uint32_t position) const { return keys(head) + slot(position) * key_bytes; }
  std::byte* value(std::uint32_t head, std::uint32_t position) const {
    return values(head) + slot(position) * (n_values == 0 ? key_bytes : value_bytes);
  }
  std::span<double> sums_of(std::uint32_t head) const { return {sums + std::size_t{head} * capacity, capacity}; }
  /// Returns the number of tokens, from a position on, whose keys and values need no other choice than the first's.
  std::uint32_t until_choice(std::uint32_t position) const {
    if (position < capacity) return capacity - position;
    return choice == KvChoice::h2o ? 1 : capacity - slot(position);
  }
};

/// A layer's state of one sequence in a pass: the state before columns, null at position 0, and the memory for the
/// state after them. Both are [state_floats] (see state.h).
struct StateMemory {
  const float* before = nullptr;
  float* now = nullptr;
};

/// The part of a sequence's memory with which it continues at a position, as it is saved and copied.
struct Snapshot {
  std::uint32_t position = 0;    // tokens whose keys, values and states it has
  std::uint32_t from = 0;        // the earliest position to go back to, at most `position`
  std::uint32_t checkpoint = 0;  // position of the checkpoint of its states, below `position`; 0: none
};

class SequenceMemory;

/// The memory of a snapshot, piece by piece: keys and values of each layer that has its own, [K, V][KV head][position],
/// then the same of positions in f16, then the states of all layers, then those of the checkpoint.
class MemoryPieces {
 public:
  struct Piece {
    std::byte* data;   // null: positions that the ring of this plan does not keep
    std::size_t size;  // 0: the end
  };
  MemoryPieces() = default;
  Piece next();

 private:
  friend SequenceMemory;
  enum class Part : std::uint8_t { positions, states, checkpoint, end };
  MemoryPieces(const SequenceMemory& memory, std::uint32_t sequence, const Snapshot& snapshot, std::uint8_t now,
               std::uint8_t kept)
      : memory_(&memory),
        sequence_(sequence),
        snapshot_(snapshot),
        slots_{now, kept},
        part_(snapshot.position == 0 ? Part::end : Part::positions) {}
  Piece next_positions();
  Piece next_state(std::uint8_t slot);

  const SequenceMemory* memory_ = nullptr;
  std::uint32_t sequence_ = 0;
  Snapshot snapshot_;
  std::array<std::uint8_t, 2> slots_{};  // of the states and of the checkpoint
  Part part_ = Part::end;
  std::uint32_t stage_ = 1, head_ = 0;  // the next piece: [n_heads + n_values] in the ring or the stage
  std::uint32_t done_ = 0;              // positions of this head so far
};

class SequenceMemory {
 public:
  /// Takes the memory from `arena`; fails with out_of_memory. `chunk` is the most columns of a pass. With `guesses`,
  /// the layer that guesses has memory too. Snapshots do not have it, so that they are the same without. At positions
  /// which that layer has not computed, it has zeros or the keys and values of an earlier text. With `ahead`, columns
  /// of a pass may be guesses.
  Status init(Arena& arena, const Program& program, std::uint32_t dim, KvType type, std::uint32_t n_sequences,
              std::uint32_t max_seq_len, std::uint32_t chunk = kTogether, const KvPolicy& policy = {},
              bool guesses = false, bool ahead = false);

  KvType type() const { return type_; }
  KvMemory kv(std::uint32_t sequence, std::uint32_t stage) const { return memory(sequence, rings_of(sequence)[stage]); }
  /// Returns the positions in f16 that a stage has in addition. Their capacity is 0 if it has none.
  KvMemory exact(std::uint32_t sequence, std::uint32_t stage) const {
    return memory(sequence, rings_of(sequence)[n_stages_ + stage]);
  }
  /// Returns the state for a sequence's known tokens in a pass, or for its guesses, which follow them. Guesses end in
  /// memory that all layers and sequences use in turn, so a state never has a guess.
  StateMemory state(std::uint32_t sequence, std::uint32_t stage, bool guess = false) const;
  /// Returns the floats for one token's scores that attention needs in any layer.
  std::uint64_t scores() const { return scores_; }

  /// Announces that a pass writes positions up to `end`.
  void write(std::uint32_t sequence, std::uint32_t end);
  /// Ends a pass, after which the sequence is at `position`. Without this call the sequence stays at its old position.
  /// `keep` makes the state before the pass the checkpoint.
  void commit(std::uint32_t sequence, std::uint32_t position, bool keep);
  /// Whether a layer has a recurrent state.
  bool has_states() const { return slot_floats_ != 0; }
  /// Whether attention chooses positions. Such memory has no snapshots, and goes back to position 0 only.
  bool chooses() const { return chooses_; }
  /// Goes back to `position`, or to the nearest earlier position that is possible, and returns it. A state can only be
  /// the current one, which may be of an earlier position if guesses were right, or the checkpoint; a ring needs the
  /// window of the position. Position 0 is always possible.
  std::uint32_t rewind(std::uint32_t sequence, std::uint32_t position);
  /// Returns the position that rewind() would return.
  std::uint32_t reach(std::uint32_t sequence, std::uint32_t position) const;

  /// Returns the snapshot of a sequence at a position that reach() returned. It does not depend on the plan, except
  /// that the plan decides how far the sequence can go back.
  Snapshot snapshot(std::uint32_t sequence, std::uint32_t position) const;
  /// Whether some plan for this model can have the snapshot.
  bool is_possible(const Snapshot& snapshot) const;
  /// Return the bytes of a snapshot: of keys and values, and of states with those of the checkpoint.
  std::uint64_t position_bytes(const Snapshot& snapshot) const;
  std::uint64_t state_bytes(const Snapshot& snapshot) const;
  /// Returns the pieces of a sequence's snapshot, to read.
  MemoryPieces pieces(std::uint32_t sequence, const Snapshot& snapshot) const;
  /// Empties the sequence, and returns the pieces of its memory for a snapshot, to write.
  MemoryPieces prepare(std::uint32_t sequence, const Snapshot& snapshot);
  /// Moves the sequence to the snapshot's position, once the pieces of prepare() are written.
  void settle(std::uint32_t sequence, const Snapshot& snapshot);
  /// Makes another sequence one with the snapshot of this sequence.
  void copy(std::uint32_t from, std::uint32_t to, const Snapshot& snapshot);

  /// Whether the policy can keep fewer positions than now: it has a window, and a choice has begun to choose.
  bool can_shrink() const { return policy_.window != 0 && (policy_.choice == KvChoice::none || chooses_); }
  /// Evicts positions of all sequences by the policy, which keeps `window` from now on, if that is fewer than now. No
  /// pass may be under way. Returns false if a sequence has to wait: SnapKV evicts when its slots are full.
  bool shrink(std::uint32_t window);
  /// Returns the memory of a sequence that it does not need any more since then.
  std::span<std::byte> unused(std::uint32_t sequence) const;

 private:
  friend MemoryPieces;
  static constexpr std::uint64_t kShared = ~std::uint64_t{0};
  struct Ring {
    std::uint64_t offset;  // in a sequence's bytes; kShared: memory that layers and sequences use in turn
    std::uint32_t n_heads, n_values, capacity, window;
    std::uint32_t first_kept;  // slots of first positions
    std::uint32_t key_bytes, value_bytes;
    KvChoice choice;
    std::uint64_t sums;        // offset as `offset`, if there is a choice
    std::uint32_t sees;        // positions that a token sees in any plan; 0: all
    std::uint32_t sees_first;  // and first positions in addition
    bool own;                  // no other layer's
    bool saved;                // own, and a part of snapshots
    std::uint64_t state;       // offset in a slot's floats
    std::uint64_t state_floats;

    std::uint32_t rows() const { return n_heads + n_values; }
    /// Returns the bytes of a position of all heads.
    std::uint64_t bytes() const { return std::uint64_t{n_heads} * key_bytes + std::uint64_t{n_values} * value_bytes; }
    /// Returns the first position that a token at `from` sees in its window.
    std::uint32_t first(std::uint32_t from) const { return sees == 0 || from < sees ? 0 : from - (sees - 1); }
    /// Returns the number of positions before those of `from`'s window that a snapshot has.
    std::uint32_t kept(std::uint32_t from) const { return std::min(sees_first, first(from)); }
  };
  /// A slot has all states of a sequence. One slot has the current states, one the states that a pass writes, and one
  /// the checkpoint.
  static constexpr std::uint8_t kSlots = 3;
  /// The sizes that rings have together.
  struct Sizes {
    std::uint64_t sequence_bytes = 0, shared = 0, slot_floats = 0, most_floats = 0, scores = 0;
    bool chooses = false;
  };
  struct Slot {
    std::uint8_t index = 0;
    std::uint32_t position = 0;  // 0: empty
  };
  struct Standing {
    std::uint32_t high = 0;  // positions written since the sequence began
    std::uint32_t low = 0;   // the earliest position that a sequence which was settled can go back to
    Slot now, checkpoint;
    std::uint8_t making = 0;
    std::uint8_t set = 0;  // its rings
  };

  /// Returns the sizes of the policy's rings, and writes the rings if there is room for them.
  Sizes lay_out(const KvPolicy& policy, std::span<Ring> rings) const;
  std::span<Ring> set(std::uint8_t number) const {
    return rings_.subspan(std::size_t{number} * 2 * n_stages_, std::size_t{2} * n_stages_);
  }
  std::span<const Ring> rings_of(std::uint32_t sequence) const { return set(standings_[sequence].set); }
  /// Returns the rings that all sequences have, or will have.
  std::span<const Ring> rings() const { return set(set_); }
  bool may_move(const Standing& standing) const;
  void move(std::uint32_t sequence, std::span<const Ring> from, std::span<const Ring> to);
  void move(std::uint32_t sequence, const Ring& old, const Ring& now);

  float* slot(std::uint32_t sequence, std::uint8_t index) const {
    return states_.data() + (std::size_t{sequence} * kSlots + index) * slot_floats_;
  }
  bool held(const Standing& standing, std::uint32_t position) const;
  KvMemory memory(std::uint32_t sequence, const Ring& ring) const;

  std::span<Ring> rings_;          // [1 or 2, 2, n_stages_]: of the type, then of positions in f16
  std::span<Standing> standings_;  // [n_sequences]
  std::span<std::byte> memory_;    // [n_sequences, sequence_bytes_], then the shared memory
  std::span<float> states_;        // [n_sequences, kSlots, slot_floats_]
  std::span<float> ahead_;         // a layer's state after guesses
  std::uint64_t sequence_bytes_ = 0, shared_ = 0, slot_floats_ = 0, scores_ = 0;
  std::array<std::uint64_t, 2> used_{};  // bytes of a sequence with each set of rings
  const Program* program_ = nullptr;
  std::uint32_t n_stages_ = 0, dim_ = 0, max_seq_len_ = 0, chunk_ = 0;
  bool guesses_ = false;  // the layer that guesses has memory
  KvPolicy policy_;
  KvType type_ = KvType::f16;
  std::uint8_t set_ = 0;
  bool chooses_ = false;
};

}  // namespace qsf
