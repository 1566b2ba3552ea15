// One session in one arena, for JavaScript: conversions only. Nothing is shared between two instances but the module's
// memory. Text, token ids and pieces cross as places in linear memory; 64-bit numbers as doubles, exact up to 2^53.
// Calls that can fail give an ErrorCode's number, 0 for success; sentence() then says why.
#pragma once

#include <emscripten/val.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "qsf/engine.h"
#include "wasm/workers.h"

namespace qsf::wasm {

using emscripten::val;
using Address = std::uint32_t;

/// The types of boundary.def's options as they cross.
namespace crossing {
using u32 = std::uint32_t;
using u64 = double;
using real = float;
using flag = bool;
}  // namespace crossing

struct Open {
  double budget, file_size;
  int kv;  // KvType, or -1
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) crossing::type name;
#include "qsf/base/boundary.def"
};

struct Read {
  double offset;
  std::uint32_t size;  // 0: nothing is asked for
  std::uint32_t ticket;
  Address into;
  std::uint32_t crc;
  bool has_crc;
};

struct Text {
  Address at;
  std::uint32_t size;
};

struct Start {
  Address at;  // text bytes, or token ids when n_tokens is not 0
  std::uint32_t text_size, n_tokens;
  Address stops;  // each ended by a zero byte
  std::uint32_t n_stops;
#define QSF_SAMPLER_OPTION(type, name, js, fallback, least, most, meaning) crossing::type name;
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) crossing::type name;
#include "qsf/base/boundary.def"
};

struct Embed {
  Address at;  // text bytes, or token ids when n_tokens is not 0
  std::uint32_t text_size, n_tokens;
  int pooling;    // Pooling, or -1: the model's own
  int normalize;  // 0, 1, or -1: as the model says
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) crossing::type name;
#include "qsf/base/boundary.def"
};

class Instance {
 public:
  explicit Instance(std::uint32_t threads) : threads_(threads) {}
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  /// Begins anew each time it is called; the arena stays the same block.
  std::uint32_t open(const Open& o);
  /// Ends the threads, which a browser would otherwise wait for before it ends their workers.
  void close() { threads_.end(); }

  std::uint32_t step();
  Read next_request();
  /// Of bytes that lie in memory, several times as fast as JavaScript computes it.
  std::uint32_t crc32(Address at, std::uint32_t size) const;
  std::uint32_t complete(std::uint32_t ticket) { return code(session_->complete(ticket)); }
  /// The sentence is staged.
  void fail(std::uint32_t ticket, std::uint32_t error, std::uint32_t size);
  /// Memory for what the next call reads, 0 when there is not so much outside the arena. Valid until the next stage().
  Address stage(std::uint32_t size);

  std::uint32_t start(const Start& s, std::uint32_t sequence);
  std::uint32_t embed(const Embed& e, std::uint32_t sequence);
  /// Floats, their size in bytes.
  Text embedding() const;
  void stop(std::uint32_t sequence) { session_->stop(sequence); }
  std::uint32_t rewind(std::uint32_t n, std::uint32_t sequence) { return code(session_->rewind(n, sequence)); }
  std::uint32_t preload() { return code(session_->preload()); }

  std::uint32_t sequence() const { return session_->sequence(); }
  std::uint32_t token() const { return session_->token(); }
  Text piece() const;
  std::uint32_t end(std::uint32_t sequence) const { return static_cast<std::uint32_t>(session_->end(sequence)); }
  /// Of the last failure.
  std::uint32_t error_code() const { return static_cast<std::uint32_t>(last_error_.code); }
  std::string sentence() const { return last_error_.sentence; }
  std::string model_hash() const { return std::string(session_->model_hash()); }
  std::string logits_hash(std::uint32_t sequence) { return std::string(session_->logits_hash(sequence)); }

  /// The count, or minus an ErrorCode's number. Text and room for `max` ids behind it (4-byte aligned) are staged.
  double tokenize(const Text& what, bool special, Address out, std::uint32_t max);
  Text detokenize(std::uint32_t id) const;

  val stats() const;
  val sequence_stats(std::uint32_t sequence) const;
  /// Regions by number, with their bytes.
  val memory_map() const;
  val kernel_counts() const;
  /// The segment table, with what the plan makes of it.
  val segments() const;

 private:
  std::uint32_t code(const Error& error);
  std::uint32_t code(const Status& status) { return code(status.error()); }

  LentThreads threads_;
  std::span<std::byte> arena_;
  std::byte* staging_ = nullptr;
  Session* session_ = nullptr;
  std::optional<ReadRequest> request_;  // taken from the session, not yet by JavaScript
  Error last_error_;
  std::uint32_t steps_ = 1;  // between two looks at the clock
};

}  // namespace qsf::wasm
