// What layers keep of the sequences: a lane per layer and sequence. A lane of attention is a ring of the positions that
// its window still sees; which positions are kept, and how far a sequence can go back, is decided here alone.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"
#include "model/program.h"
#include "qsf/formats/kv.h"

namespace qsf {

/// Tokens of one sequence whose attention shares the reading of its lane.
inline constexpr std::uint32_t kTogether = 4;

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

class Lanes {
 public:
  Status init(Arena& arena, const Program& program, KvType type, std::uint32_t n_sequences, std::uint32_t max_seq_len);

  KvType type() const { return type_; }
  KvLane kv(std::uint32_t sequence, std::uint32_t section) const;
  /// Floats of scores that attention over any lane takes, for one query.
  std::uint64_t scores() const { return scores_; }

  /// Positions up to `end` are about to be written.
  void write(std::uint32_t sequence, std::uint32_t end);
  /// The sequence is to go on at `position` or before: where it can. A ring that later positions have overwritten
  /// cannot be gone back in; the sequence then begins anew, from position 0.
  std::uint32_t rewind(std::uint32_t sequence, std::uint32_t position);

 private:
  struct Ring {
    std::uint64_t offset;  // in a sequence's bytes
    std::uint32_t n_heads, capacity, window;
    std::uint32_t position_bytes;
  };

  std::span<Ring> rings_;           // [n_layers + 2] by section
  std::span<std::uint32_t> highs_;  // [n_sequences]: positions ever written since the sequence was begun
  std::span<std::byte> memory_;     // [n_sequences, sequence_bytes_]
  std::uint64_t sequence_bytes_ = 0, scores_ = 0;
  KvType type_ = KvType::f16;
};

}  // namespace qsf
