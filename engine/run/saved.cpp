#include "run/saved.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "qsf/base/bytes.h"
#include "qsf/base/try.h"
#include "run/model.h"

namespace qsf {
namespace {

Snapshot snapshot_of(const SavedHeader& header) { return {header.position, header.from, header.checkpoint}; }

bool rotates_as_long(const Model& model) {
  const std::uint32_t from = model.config.table.model.long_rope_from;
  return from != 0 && model.plan.max_seq_len > from;
}

Status check_saves(const Model& model) {
  if (!model.hash.is_known) {
    return make_error(ErrorCode::bad_state, "the model's checksums are not all known, and a saved sequence names them");
  }
  if (model.memory.chooses()) {
    return make_error(ErrorCode::unsupported,
                      "this session keeps positions that attention chose, and only sequences that keep the first and "
                      "last ones can be saved");
  }
  if (!model.config.table.bidirectional()) return {};
  return make_error(ErrorCode::unsupported,
                    "this model makes embeddings, of which a sequence keeps nothing that could be saved");
}

/// Writes a policy's text, such as sinks:4+60, and returns it.
std::string_view name_policy(std::uint32_t window, std::uint32_t sinks, std::span<char> out) {
  const std::size_t n = window == 0  ? format_into(out, "all")
                        : sinks == 0 ? format_into(out, "window:{}", window)
                                     : format_into(out, "sinks:{}+{}", sinks, window);
  return {out.data(), n};
}

Error changed(const char* what) {
  return make_error(ErrorCode::bad_state, "the sequence has changed since its {} began", what);
}

}  // namespace

MemoryPieces::Piece MemoryBytes::rest() {
  if (piece_.size == 0) piece_ = pieces_.next();
  return piece_;
}

void MemoryBytes::skip(std::size_t bytes) {
  if (piece_.data != nullptr) piece_.data += bytes;
  piece_.size -= bytes;
}

std::size_t MemoryBytes::read(std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const MemoryPieces::Piece piece = rest();
    const std::size_t n = std::min(piece.size, into.size() - done);
    if (n == 0) break;
    std::memcpy(&into[done], piece.data, n);
    skip(n);
    done += n;
  }
  return done;
}

void MemoryBytes::write(std::span<const std::byte> from) {
  while (!from.empty()) {
    const MemoryPieces::Piece piece = rest();
    const std::size_t n = std::min(piece.size, from.size());
    if (n == 0) return;
    if (piece.data != nullptr) std::memcpy(piece.data, from.data(), n);
    skip(n);
    from = from.subspan(n);
  }
}

Result<SavedHeaderBytes> Saving::begin(const Model& model, const Sequence& sequence, const NoteSum& note,
                                       std::uint32_t n_tokens) {
  QSF_TRY(check_saves(model));
  const auto known = static_cast<std::uint32_t>(sequence.tokens().size());
  if (n_tokens != kAllTokens && n_tokens > known) {
    return make_error(ErrorCode::bad_argument, "the sequence has {} tokens, not {}", known, n_tokens);
  }
  if (note.bytes > kMaxNoteBytes) {
    return make_error(ErrorCode::bad_argument, "the note has {} bytes, and at most {} are possible", note.bytes,
                      kMaxNoteBytes);
  }
  n_tokens_ = std::min(n_tokens, known);
  const std::uint32_t position = model.memory.reach(sequence.id(), std::min(sequence.position(), n_tokens_));
  const Snapshot snapshot = model.memory.snapshot(sequence.id(), position);
  SavedHeader header{.kv = model.plan.kv,
                     .model = model.hash.digest,
                     .n_tokens = n_tokens_,
                     .position = snapshot.position,
                     .from = snapshot.from,
                     .checkpoint = snapshot.checkpoint,
                     .kv_window = model.options.kv_window,
                     .kv_sinks = model.options.kv_sinks,
                     .long_rope = rotates_as_long(model),
                     .note = note,
                     .position_bytes = model.memory.position_bytes(snapshot),
                     .state_bytes = model.memory.state_bytes(snapshot)};
  memory_ = MemoryBytes(model.memory.pieces(sequence.id(), snapshot));
  at_ = 0;
  end_ = header.payload_bytes();
  crc_ = 0;
  sequence_ = &sequence;
  changes_ = sequence.changes();
  return write_saved_header(header);
}

Result<std::size_t> Saving::next(std::span<std::byte> into) {
  if (sequence_ == nullptr) return make_error(ErrorCode::bad_state, "no saving was begun");
  if (sequence_->changes() != changes_) return changed("saving");
  std::size_t done = 0;
  const std::span<const std::byte> tokens = std::as_bytes(sequence_->tokens().first(n_tokens_));
  const auto copy = [&](std::span<const std::byte> part, std::uint64_t begin) {
    if (at_ < begin || at_ >= begin + part.size()) return;
    const std::span<const std::byte> rest = part.subspan(static_cast<std::size_t>(at_ - begin));
    const std::size_t n = std::min(rest.size(), into.size() - done);
    if (n == 0) return;
    std::memcpy(&into[done], rest.data(), n);
    done += n;
    at_ += n;
  };
  copy(tokens, 0);
  const std::uint64_t crc_at = end_ - sizeof crc_;
  if (at_ >= tokens.size() && at_ < crc_at) {
    const std::size_t n = memory_.read(into.subspan(done));
    done += n;
    at_ += n;
  }
  crc_ = crc32(into.first(done), crc_);
  std::array<std::byte, sizeof crc_> crc{};
  store_le(crc.data(), crc_);
  copy(crc, crc_at);
  return done;
}

Status Restoring::check(const Model& model) const {
  QSF_TRY(check_saves(model));
  const SavedHeader& h = header_;
  if (h.model != model.hash.digest) {
    return make_error(ErrorCode::mismatch,
                      "the saved sequence is of another model: its hash begins with {:.12}, and this model's with "
                      "{:.12}",
                      hex(h.model).data(), model.hash.text.data());
  }
  if (h.kv != model.plan.kv) {
    return make_error(ErrorCode::mismatch,
                      "the saved sequence has keys and values in {}, and this session in {}: a session with kv {} "
                      "would do",
                      kv_name(h.kv), kv_name(model.plan.kv), kv_name(h.kv));
  }
  if (const OpenOptions& o = model.options; h.kv_window != o.kv_window || h.kv_sinks != o.kv_sinks) {
    std::array<char, 32> kept, keeps;
    const std::string_view of_file = name_policy(h.kv_window, h.kv_sinks, kept);
    return make_error(
        ErrorCode::mismatch,
        "the saved sequence has the policy {}, and this session {}: a session with the policy {} would do", of_file,
        name_policy(o.kv_window, o.kv_sinks, keeps), of_file);
  }
  if (h.long_rope != rotates_as_long(model)) {
    const std::uint32_t from = model.config.table.model.long_rope_from;
    return make_error(ErrorCode::mismatch,
                      "the saved sequence was computed in a context of {} {} tokens, in which this model rotates keys "
                      "in another way than in this context of {}: a context (max_seq_len) of {} {} would do",
                      h.long_rope ? "more than" : "at most", from, model.plan.max_seq_len,
                      h.long_rope ? "more than" : "at most", from);
  }
  if (h.n_tokens > model.plan.max_seq_len) {
    return make_error(ErrorCode::context_full,
                      "the saved sequence has {} tokens, and the context has room for {}: a context (max_seq_len) of "
                      "more than {} would do",
                      h.n_tokens, model.plan.max_seq_len, h.n_tokens);
  }
  const Snapshot snapshot = snapshot_of(h);
  if (!model.memory.is_possible(snapshot) || h.position_bytes != model.memory.position_bytes(snapshot) ||
      h.state_bytes != model.memory.state_bytes(snapshot)) {
    return make_error(ErrorCode::bad_header,
                      "the saved sequence contradicts its model: {} bytes of keys and values and {} of states at "
                      "position {}",
                      h.position_bytes, h.state_bytes, h.position);
  }
  return {};
}

Status Restoring::begin(const Model& model, const Sequence& sequence, std::span<const std::byte> header,
                        std::uint64_t file_bytes) {
  id_.reset();
  QSF_LET(read, read_saved_header(header, file_bytes));
  header_ = read;
  QSF_TRY(check(model));
  if (!sequence.is_idle()) return make_error(ErrorCode::bad_state, "the sequence is being computed: stop it first");
  keeps_ = false;
  at_ = 0;
  crc_ = 0;
  changes_ = sequence.changes();
  id_ = sequence.id();
  return {};
}

Status Restoring::begin_to_keep(Model& model, Sequence& sequence) {
  const auto is_of_it = [&](const Column& column) { return column.sequence == sequence.id(); };
  if (std::ranges::any_of(model.in_pass, is_of_it)) {
    return make_error(ErrorCode::bad_state,
                      "a pass that other sequences share still computes the sequence's former tokens");
  }
  sequence.clear(model.memory);
  changes_ = sequence.changes();
  memory_ = MemoryBytes(model.memory.prepare(sequence.id(), snapshot_of(header_)));
  return {};
}

Result<bool> Restoring::take(Model& model, std::span<const std::byte> bytes) {
  if (!id_) return make_error(ErrorCode::bad_state, "no restoring was begun");
  Sequence& sequence = model.sequences[*id_];
  if (sequence.changes() != changes_) {
    id_.reset();
    return changed("restoring");
  }
  const std::uint64_t end = header_.payload_bytes();
  if (bytes.size() > end - at_) {
    return make_error(ErrorCode::bad_argument, "{} bytes are more than the {} that the saved sequence still has",
                      bytes.size(), end - at_);
  }
  if (at_ == 0 && keeps_ && !bytes.empty()) QSF_TRY(begin_to_keep(model, sequence));
  if (const Status taken = take_piece(model, sequence, bytes); !taken) {
    id_.reset();
    return taken.error();
  }
  if (at_ != end) return false;
  at_ = 0;
  crc_ = 0;
  if (!keeps_) {
    keeps_ = true;
    return false;
  }
  id_.reset();
  model.memory.settle(sequence.id(), snapshot_of(header_));
  sequence.settle(header_.n_tokens, header_.position);
  return true;
}

Status Restoring::take_piece(const Model& model, Sequence& sequence, std::span<const std::byte> bytes) {
  const std::uint64_t tokens_end = std::uint64_t{4} * header_.n_tokens, crc_at = header_.payload_bytes() - sizeof crc_;
  const auto first_of = [&](std::uint64_t end) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), end - std::min(at_, end)));
    const std::span<const std::byte> part = bytes.first(n);
    bytes = bytes.subspan(n);
    return part;
  };
  const std::span<const std::byte> tokens = first_of(tokens_end);
  QSF_TRY(take_token_bytes(model, sequence, tokens));
  const std::span<const std::byte> memory = first_of(crc_at);
  if (keeps_) memory_.write(memory);
  crc_ = crc32(memory, crc32(tokens, crc_));
  at_ += memory.size();
  for (const std::byte b : bytes) number_[static_cast<std::size_t>(at_++ - crc_at)] = b;
  if (at_ != header_.payload_bytes() || load_le<std::uint32_t>(number_.data()) == crc_) return {};
  return make_error(ErrorCode::bad_checksum, "the saved sequence has CRC-32 {:08x}, not the {:08x} that it states",
                    crc_, load_le<std::uint32_t>(number_.data()));
}

/// Checks ids, which may be cut anywhere, and keeps them the second time.
Status Restoring::take_token_bytes(const Model& model, Sequence& sequence, std::span<const std::byte> bytes) {
  for (const std::byte b : bytes) {
    number_[at_ % sizeof(std::uint32_t)] = b;
    if (++at_ % sizeof(std::uint32_t) != 0) continue;
    const auto id = load_le<std::uint32_t>(number_.data());
    if (id >= model.config.vocab_size) {
      return make_error(ErrorCode::bad_token, "token {} of the saved sequence is not in the vocabulary of {}", id,
                        model.config.vocab_size);
    }
    if (keeps_) sequence.set_token(static_cast<std::uint32_t>(at_ / sizeof(std::uint32_t) - 1), id);
  }
  return {};
}

}  // namespace qsf
