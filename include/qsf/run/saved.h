// A saved sequence: its tokens and the memory of those that are computed, as bytes that another session with the same
// model continues from. docs/reference/format-session.md has the layout: this header, the host's note, the payload.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/checksum.h"
#include "qsf/base/kv_type.h"
#include "qsf/base/result.h"

namespace qsf {

inline constexpr std::uint32_t kSavedMagic = 0x53465351;  // "QSFS"
inline constexpr std::uint32_t kSavedVersion = 1;
inline constexpr std::size_t kSavedHeaderSize = 128;
inline constexpr std::uint32_t kMaxNoteBytes = 1u << 24;

/// The size and the CRC-32 of a note, which the host writes itself.
struct NoteSum {
  std::uint32_t bytes = 0, crc = 0;
};
/// Returns those of a note of at most 4 GiB.
NoteSum sum_of_note(std::span<const std::byte> note);

/// All token ids of a sequence.
inline constexpr std::uint32_t kAllTokens = ~std::uint32_t{0};

struct SavedHeader {
  KvType kv = KvType::f16;
  Sha256Digest model{};  // the digest that Session::model_hash() shows
  std::uint32_t n_tokens = 0;
  std::uint32_t position = 0;    // tokens whose memory is saved
  std::uint32_t from = 0;        // the earliest position that the sequence can go back to without position 0
  std::uint32_t checkpoint = 0;  // position of the saved checkpoint of states; 0: none
  std::uint32_t kv_window = 0, kv_sinks = 0;  // OpenOptions of the session, which decide the values
  bool long_rope = false;  // keys are rotated as in contexts that are longer than the model's usual one
  NoteSum note;
  std::uint64_t position_bytes = 0, state_bytes = 0;

  /// Returns the bytes of header and note, after which the payload begins.
  std::uint64_t payload_offset() const { return kSavedHeaderSize + note.bytes; }
  /// Returns the bytes of token ids, memory and the payload's CRC.
  std::uint64_t payload_bytes() const { return std::uint64_t{4} * n_tokens + position_bytes + state_bytes + 4; }
  std::uint64_t file_bytes() const { return payload_offset() + payload_bytes(); }
  /// Returns the position from which a restored sequence continues if it keeps its first n tokens.
  std::uint32_t reach(std::uint32_t n) const {
    if (n >= position) return position;
    if (state_bytes != 0) return checkpoint <= n ? checkpoint : 0;
    return n >= from ? n : 0;
  }
};

using SavedHeaderBytes = std::array<std::byte, kSavedHeaderSize>;
SavedHeaderBytes write_saved_header(const SavedHeader& header);

/// Reads a header. Errors: truncated, bad_magic, bad_version, bad_checksum, bad_header. Of
/// a file that it accepts every count agrees with the others; only a session can compare them with its model.
Result<SavedHeader> read_saved_header(std::span<const std::byte> bytes);
/// Reads the header of a file of `file_bytes`, which must be those that it states.
Result<SavedHeader> read_saved_header(std::span<const std::byte> bytes, std::uint64_t file_bytes);
/// Fails with bad_checksum unless this is the note of the file.
Status check_note(const SavedHeader& header, std::span<const std::byte> note);

}  // namespace qsf
