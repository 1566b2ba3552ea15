// The header of a saved sequence: docs/reference/format-session.md.
#include <algorithm>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "qsf/run/saved.h"

namespace qsf {
namespace {

constexpr std::uint32_t kLongRope = 1;  // bit of the flags
constexpr std::size_t kCrcOffset = kSavedHeaderSize - 4;
/// The most token ids, positions of any context, and the most bytes of anything, so that sums do not overflow.
constexpr std::uint32_t kMostTokens = 1u << 24;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;

/// Calls visit(offset, value) for each field after the KV type, except the digest.
template <class Header, class Visit>
void each_field(Header& h, Visit visit) {
  visit(48, h.n_tokens);
  visit(52, h.position);
  visit(56, h.from);
  visit(60, h.checkpoint);
  visit(68, h.note.bytes);
  visit(72, h.note.crc);
  visit(80, h.position_bytes);
  visit(88, h.state_bytes);
  visit(104, h.kv_window);
  visit(108, h.kv_sinks);
}

Error contradiction(const char* what, std::uint64_t value) {
  return make_error(ErrorCode::bad_header, "the saved sequence contradicts itself: {} is {}", what, value);
}

}  // namespace

SavedHeaderBytes write_saved_header(const SavedHeader& h) {
  SavedHeaderBytes out{};
  store_le(&out[0], kSavedMagic);
  store_le(&out[4], kSavedVersion);
  store_le(&out[8], static_cast<std::uint32_t>(kSavedHeaderSize));
  store_le(&out[12], static_cast<std::uint32_t>(h.kv));
  std::ranges::copy(std::as_bytes(std::span(h.model)), &out[16]);
  each_field(h, [&](std::size_t offset, auto value) { store_le(&out[offset], value); });
  store_le(&out[64], h.long_rope ? kLongRope : 0u);
  store_le(&out[96], h.file_bytes());
  store_le(&out[kCrcOffset], crc32(std::span(out).first(kCrcOffset)));
  return out;
}

Result<SavedHeader> read_saved_header(std::span<const std::byte> bytes) {
  if (bytes.size() < 4 || load_le<std::uint32_t>(bytes.data()) != kSavedMagic) {
    return make_error(ErrorCode::bad_magic, "this is not a saved sequence: it does not begin with QSFS");
  }
  if (bytes.size() < kSavedHeaderSize) {
    return make_error(ErrorCode::truncated, "the saved sequence has {} bytes, less than a header", bytes.size());
  }
  const std::byte* const at = bytes.data();
  const auto version = load_le<std::uint32_t>(at + 4);
  if (version != kSavedVersion) {
    return make_error(ErrorCode::bad_version, "the saved sequence has version {}, and this build reads version {}",
                      version, kSavedVersion);
  }
  const std::uint32_t crc = crc32(bytes.first(kCrcOffset)), stated = load_le<std::uint32_t>(at + kCrcOffset);
  if (crc != stated) {
    return make_error(ErrorCode::bad_checksum,
                      "the saved sequence's header has CRC-32 {:08x}, not the {:08x} it states", crc, stated);
  }
  SavedHeader h;
  each_field(h, [&](std::size_t offset, auto& value) {
    value = load_le<std::remove_reference_t<decltype(value)>>(at + offset);
  });
  std::memcpy(h.model.data(), at + 16, h.model.size());
  const auto size = load_le<std::uint32_t>(at + 8), kv = load_le<std::uint32_t>(at + 12);
  const auto flags = load_le<std::uint32_t>(at + 64);
  if (size != kSavedHeaderSize) return contradiction("the header's size", size);
  if (kv >= kKvNames.size()) return contradiction("the number of the KV type", kv);
  if (flags > kLongRope) return contradiction("the flags' number", flags);
  h.kv = static_cast<KvType>(kv);
  h.long_rope = (flags & kLongRope) != 0;
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  if (!std::all_of(at + 76, at + 80, is_zero) || !std::all_of(at + 112, at + kCrcOffset, is_zero)) {
    return make_error(ErrorCode::bad_header, "reserved bytes of the saved sequence's header are not 0");
  }
  if (h.n_tokens > kMostTokens) return contradiction("the number of tokens", h.n_tokens);
  if (h.position > h.n_tokens) return contradiction("the number of computed tokens", h.position);
  if (h.from > h.position) return contradiction("the earliest position", h.from);
  if (h.checkpoint != 0 && (h.checkpoint >= h.position || h.checkpoint < h.from)) {
    return contradiction("the checkpoint's position", h.checkpoint);
  }
  if (h.kv_window > kMostTokens) return contradiction("the window", h.kv_window);
  if (h.kv_sinks > (h.kv_window == 0 ? 0 : kMostTokens)) return contradiction("the number of sinks", h.kv_sinks);
  if (h.note.bytes > kMaxNoteBytes) return contradiction("the note's size", h.note.bytes);
  if (h.position_bytes > kMostBytes) return contradiction("the size of keys and values", h.position_bytes);
  if (h.state_bytes > kMostBytes) return contradiction("the size of the states", h.state_bytes);
  if (load_le<std::uint64_t>(at + 96) != h.file_bytes()) {
    return contradiction("the size", load_le<std::uint64_t>(at + 96));
  }
  return h;
}

Result<SavedHeader> read_saved_header(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  QSF_LET(h, read_saved_header(bytes));
  if (file_bytes < h.file_bytes()) {
    return make_error(ErrorCode::truncated, "the saved sequence has {} of its {} bytes", file_bytes, h.file_bytes());
  }
  if (file_bytes > h.file_bytes()) {
    return make_error(ErrorCode::bad_header, "the saved sequence has {} bytes, and its header states {}", file_bytes,
                      h.file_bytes());
  }
  return h;
}

NoteSum sum_of_note(std::span<const std::byte> note) { return {static_cast<std::uint32_t>(note.size()), crc32(note)}; }

Status check_note(const SavedHeader& header, std::span<const std::byte> note) {
  if (note.size() == header.note.bytes && crc32(note) == header.note.crc) return {};
  return make_error(ErrorCode::bad_checksum,
                    "the saved sequence's note does not have the CRC-32 that its header states");
}

}  // namespace qsf
