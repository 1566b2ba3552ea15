// The C++ surface that hosts use. A Session is one open model and one sequence of tokens, living in a block of memory
// that the host gives. It does no I/O, starts no threads, reads no clock, throws nothing and, once opened, allocates
// nothing. The host's loop:
//
//   while (true) switch (session.step()) {
//     case Step::working:    issue requests(session); break;            // more to do, call again
//     case Step::need_bytes: issue requests(session); wait for one; break;
//     case Step::token:      show(session.piece()); break;
//     case Step::done: case Step::error: case Step::ready: return;
//   }
//
// where issuing drains session.next_request() and each read ends in session.complete(ticket) or session.fail(ticket,
// e).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/base/align.h"
#include "qsf/base/result.h"
#include "qsf/base/workers.h"
#include "qsf/file/layout.h"
#include "qsf/formats/kv.h"
#include "qsf/model/work.h"
#include "qsf/run/sampling.h"
#include "qsf/stream/read_request.h"

namespace qsf {

/// Taken from every budget for what the arena does not hold (the host's stack and static data), natively as in
/// WebAssembly, so that the same budget gives the same plan.
inline constexpr std::uint64_t kHostReserve = 1u << 20;

struct OpenOptions {
  std::uint32_t max_seq_len = 0;  // 0: the model's own, reduced as the budget asks
  std::uint32_t chunk = 0;        // prefill columns per pass; 0: the plan's choice
  std::uint32_t ring_slots = 0;   // 0: the plan's choice
  std::optional<KvType> kv;       // empty: f16 (f32 for a model of f32 weights), or fewer bits where the budget asks
  bool stream_all = false;        // pin nothing that need not be: the smallest ring
  bool all_logits = false;        // room for the logits of a whole chunk (see Prompt::all_logits)
  std::string_view isa;           // empty: the best
  Workers workers;
};

enum class Step : std::uint8_t { working, need_bytes, logits, token, done, ready, error };

struct Prompt {
  std::string_view text;                  // read during start() only
  std::span<const std::uint32_t> tokens;  // used instead of text when not empty; nothing is added
  bool add_bos = true;                    // with text at the start of a sequence: the begin token, if the model has one
  bool special = true;                    // added tokens in the text become their ids
  std::uint32_t max_tokens = 256;         // 0: the prompt only
  bool all_logits = false;                // Step::logits after each prefill chunk, for every position
  bool hash_logits = false;               // SHA-256 over every logits row that is computed, in order
  bool ignore_eos = false;
  SamplerOptions sampler;
  std::span<const std::string_view> stops;  // read during start() only
};

struct MemoryRegion {
  std::string_view name;
  std::uint64_t bytes;
};

struct Stats {
  std::uint64_t budget = 0;
  std::uint64_t model_bytes = 0;   // of the file
  std::uint64_t weight_bytes = 0;  // raw bytes of all segments
  std::uint64_t pinned_bytes = 0;  // of them
  std::uint32_t n_segments = 0, n_pinned = 0, ring_slots = 0;
  std::uint64_t ring_bytes = 0, kv_bytes = 0, free_bytes = 0;
  std::uint32_t max_seq_len = 0, chunk = 0, vocab_size = 0, n_layers = 0;
  KvType kv = KvType::f16;
  std::string_view isa;
  std::uint64_t bytes_read = 0;                           // asked of the host so far
  std::uint64_t prompt_tokens = 0, generated_tokens = 0;  // of the current or last generation
  std::uint32_t position = 0;                             // tokens in the KV cache
};

/// The instruction sets that this build has kernels for and this machine can run, slowest first; empty behind the last.
std::string_view instruction_set(std::size_t index);

class Session;

/// A session in `memory`, which must stay in place and be budget - kHostReserve bytes. Steps until Step::ready.
Result<Session*> open_session(std::span<std::byte> memory, std::uint64_t budget, std::uint64_t file_size,
                              const OpenOptions& options);

/// Calls below are made from one thread, except complete() and fail(), which may come from one other.
class Session {
 public:
  Step step();
  std::optional<ReadRequest> next_request();
  /// Checks and unpacks the bytes. An error here also ends the current step()s with Step::error.
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);

  /// Begins a generation; the session must be ready, done, or stopped by the caller. Continues the sequence in the KV
  /// cache unless rewind(0) came before.
  Status start(const Prompt& prompt);
  /// Stops the current generation where it is; the sequence keeps its tokens, also those not fed yet.
  void stop();
  /// Forgets all but the first n positions of the sequence.
  Status rewind(std::uint32_t n);
  /// Asks for every pinned segment; step() gives ready when they are there.
  Status preload();

  const Error& error() const;                     // after Step::error
  std::uint32_t token() const;                    // after Step::token
  std::string_view piece() const;                 // after Step::token or Step::done: text that may be shown now
  std::span<const float> logits() const;          // after Step::logits: [n, vocab_size]
  std::span<const std::uint32_t> tokens() const;  // of the sequence, also those not fed yet
  bool stopped_by_eos() const;
  /// What the last step() of a generation did, for hosts that measure their steps.
  Work work() const;

  Stats stats() const;
  std::span<const MemoryRegion> memory_map() const;
  std::span<const KernelCount> kernel_counts() const;
  std::span<const SegmentEntry> segments() const;  // of the file, once it is open
  bool is_pinned(std::uint32_t segment) const;
  std::string_view model_hash() const;  // hex SHA-256 over header, index, directory and tables
  std::string_view logits_hash();       // hex, of this generation
  Result<std::uint32_t> tokenize(std::string_view text, bool special, std::span<std::uint32_t> out);
  std::string_view detokenize(std::uint32_t token, std::span<char> buffer) const;

 private:
  friend Result<Session*> open_session(std::span<std::byte>, std::uint64_t, std::uint64_t, const OpenOptions&);
  struct Impl;
  Impl* impl_ = nullptr;
};

}  // namespace qsf
