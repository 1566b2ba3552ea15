// Saving and restoring of a sequence, piece by piece, through buffers of the host.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "model/sequence_memory.h"
#include "qsf/run/saved.h"

namespace qsf {

struct Model;
class Sequence;

/// Copies bytes between the pieces of memory and the host's buffers.
class MemoryBytes {
 public:
  MemoryBytes() = default;
  explicit MemoryBytes(const MemoryPieces& pieces) : pieces_(pieces) {}
  /// Fills `into` with the next bytes, as far as there are any, and returns their number.
  std::size_t read(std::span<std::byte> into);
  /// Writes the next bytes. There must be room for them.
  void write(std::span<const std::byte> from);

 private:
  /// Returns the rest of the current piece, or the next one.
  MemoryPieces::Piece rest();
  void skip(std::size_t bytes);

  MemoryPieces pieces_;
  MemoryPieces::Piece piece_{};
};

/// The payload of one sequence on its way out.
class Saving {
 public:
  Result<SavedHeaderBytes> begin(const Model& model, const Sequence& sequence, const NoteSum& note,
                                 std::uint32_t n_tokens);
  /// Fills `into` with the payload's next bytes, fewer at its end and then none, and returns their number. Fails with
  /// bad_state if nothing was begun, or if the sequence has changed.
  Result<std::size_t> next(std::span<std::byte> into);

 private:
  const Sequence* sequence_ = nullptr;
  std::uint32_t changes_ = 0;  // of the sequence
  std::uint32_t n_tokens_ = 0;
  std::uint64_t at_ = 0;  // bytes of the payload so far
  std::uint64_t end_ = 0;
  std::uint32_t crc_ = 0;
  MemoryBytes memory_;
};

/// The payload of one sequence on its way in. It comes twice: the first time it is only checked.
class Restoring {
 public:
  /// Compares the header with the model. Nothing has changed then.
  Status begin(const Model& model, const Sequence& sequence, std::span<const std::byte> header,
               std::uint64_t file_bytes);
  /// Takes the payload's next bytes. Returns whether the sequence is restored, which it is at the end of the second
  /// time. The sequence is empty from the second beginning on until then, and after a failure.
  Result<bool> take(Model& model, std::span<const std::byte> bytes);

 private:
  Status check(const Model& model) const;
  Status take_piece(const Model& model, Sequence& sequence, std::span<const std::byte> bytes);
  Status take_token_bytes(const Model& model, Sequence& sequence, std::span<const std::byte> bytes);
  Status begin_to_keep(Model& model, Sequence& sequence);

  std::optional<std::uint32_t> id_;  // of the sequence; empty: nothing was begun
  std::uint32_t changes_ = 0;        // of the sequence
  SavedHeader header_;
  bool keeps_ = false;  // the second time
  std::uint64_t at_ = 0;
  std::uint32_t crc_ = 0;
  std::array<std::byte, 4> number_{};  // a token id or the CRC, whose bytes may come in several pieces
  MemoryBytes memory_;
};

}  // namespace qsf
