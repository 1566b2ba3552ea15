// One session in one arena, for JavaScript: conversions only. Nothing is shared between two instances but the module's
// memory. Structures cross in the instance's mailbox; text, token ids and pieces as places in linear memory. Calls that
// can fail give an ErrorCode's number, 0 for success; sentence() then says why. What JavaScript has to say at length is
// staged: it asks for room, writes there, and says in the call how much of it is what.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/engine.h"
#include "wasm/mailbox.h"
#include "wasm/workers.h"

namespace qsf::wasm {

class Instance {
 public:
  Instance(std::uint32_t threads, bool tuned) : threads_(threads, tuned) {}
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// What the next call takes or the last one gave; valid as long as the instance.
  Mailbox& mailbox() { return mailbox_; }

  /// Begins anew each time it is called; the arena stays the same block. Takes the options of an opening. `kv` is a
  /// KvType, or none of them: the plan's choice.
  std::uint32_t open(double budget, double file_size, std::int32_t kv);
  /// Ends the threads, which a browser would otherwise wait for before it ends their workers.
  void close() { threads_.end(); }

  std::uint32_t step();
  /// Gives a request, if there is one.
  bool next_request();
  /// Of bytes in the arena, several times as fast as JavaScript computes it.
  std::uint32_t crc32(const std::byte* at, std::uint32_t size) const;
  std::uint32_t complete(std::uint32_t ticket) { return code(session_->complete(ticket)); }
  /// Staged: `size` bytes of sentence.
  void fail(std::uint32_t ticket, std::uint32_t error, std::uint32_t size);
  /// Room outside the arena for what the next call reads, null when there is not so much. Valid until the next stage().
  std::byte* stage(std::uint32_t size);

  /// Takes the options of sampling, then those of a prompt. Staged: `text_size` bytes of text or, where that is 0,
  /// `n_tokens` ids; behind it the stop strings, each ended by a zero byte.
  std::uint32_t start(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens, std::uint32_t stops);
  /// Takes the options of an embedding; staged as for start(). `pooling` is a Pooling, or none of them: the model's
  /// own. `normalize` is 0, 1, or negative: as the model says.
  std::uint32_t embed(std::uint32_t sequence, std::uint32_t text_size, std::uint32_t n_tokens, std::int32_t pooling,
                      std::int32_t normalize);
  void stop(std::uint32_t sequence) { session_->stop(sequence); }
  std::uint32_t rewind(std::uint32_t n, std::uint32_t sequence) { return code(session_->rewind(n, sequence)); }
  std::uint32_t preload() { return code(session_->preload()); }

  std::uint32_t sequence() const { return session_->sequence(); }
  std::uint32_t token() const { return session_->token(); }
  std::uint32_t end(std::uint32_t sequence) const { return static_cast<std::uint32_t>(session_->end(sequence)); }
  /// Of the last failure.
  std::uint32_t error_code() const { return static_cast<std::uint32_t>(last_error_.code); }

  // These give one text, of an embedding the bytes of its floats.
  void sentence() { tell(std::string_view(last_error_.sentence)); }
  void piece() { tell(session_->piece()); }
  void embedding();
  void model_hash() { tell(session_->model_hash()); }
  void logits_hash(std::uint32_t sequence) { tell(session_->logits_hash(sequence)); }
  void detokenize(std::uint32_t id) { tell(session_->detokenize(id)); }

  /// Staged: `text_size` bytes of text, and room for ids behind it (4-byte aligned) as far as it goes. Gives the place
  /// of the ids; returns their number, or minus an ErrorCode's.
  std::int32_t tokenize(std::uint32_t text_size, bool special);

  // These give a row; of those in a list the one at `index`, and false behind the last.
  void stats();
  void sequence_stats(std::uint32_t sequence);
  bool memory_region(std::uint32_t index);
  bool kernel_count(std::uint32_t index);
  bool segment(std::uint32_t index);

 private:
  std::uint32_t code(const Error& error);
  std::uint32_t code(const Status& status) { return code(status.error()); }
  template <class T>
  void tell(T value) {
    RowWriter(mailbox_).put(value);
  }
  /// What was staged from `begin` on, `size` bytes unless fewer were.
  std::string_view staged(std::size_t begin, std::size_t size) const;
  std::span<const std::uint32_t> staged_tokens(std::size_t n) const;

  LentThreads threads_;
  std::span<std::byte> arena_;
  std::span<std::byte> staging_;
  Session* session_ = nullptr;
  std::optional<ReadRequest> request_;  // taken from the session, not yet by JavaScript
  Error last_error_;
  std::uint32_t steps_ = 1;  // between two looks at the clock
  Mailbox mailbox_{};
};

}  // namespace qsf::wasm
