// The C++ surface that hosts use. A Session is one open model and a fixed number of sequences of tokens, living in a
// block of memory that the host gives. It does no I/O, starts no threads, reads no clock, throws nothing and, once
// opened, allocates nothing. The host's loop:
//
//   while (true) switch (session.step()) {
//     case Step::working:    issue requests(session); break;            // more to do, call again
//     case Step::need_bytes: issue requests(session); wait for one; break;
//     case Step::token:      show(session.piece()); break;
//     case Step::done: case Step::error: case Step::ready: return;
//   }
//
// where issuing drains session.next_request() and each read ends in session.complete(ticket) or session.fail(ticket,
// e). Where several sequences run, session.sequence() says which one a step is about, and Step::ready that none runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/base/align.h"
#include "qsf/base/boundary.h"
#include "qsf/base/result.h"
#include "qsf/base/workers.h"
#include "qsf/file/layout.h"
#include "qsf/formats/format.h"
#include "qsf/formats/kv.h"
#include "qsf/model/observed.h"
#include "qsf/model/work.h"
#include "qsf/run/sampling.h"
#include "qsf/stream/read_request.h"
#include "qsf/text/tokenizer.h"

namespace qsf {

/// Taken from every budget for what the arena does not hold (the host's stack and static data), natively as in
/// WebAssembly, so that the same budget gives the same plan.
inline constexpr std::uint64_t kHostReserve = 1u << 20;

/// What boundary.def lists, and what has no number.
struct OpenOptions {
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  std::optional<KvType> kv;  // empty: f16 (f32 for a model of f32 weights), or fewer bits where the budget asks
  std::string_view isa;      // empty: the best
  /// The whole file where the host has it mapped, for as long as the session; empty: nowhere. Matrices that are stored
  /// as they are used are then used there, and take no memory of the session's; a request for one names its own place,
  /// which is only read.
  std::span<const std::byte> mapped;
  Observe observe = Observe::nothing;
  ObservedRoom observed_room;  // needed by Observe::products
  Workers workers;
};

struct Prompt {
  std::string_view text;                  // read during start() only
  std::span<const std::uint32_t> tokens;  // used instead of text when not empty; nothing is added
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  SamplerOptions sampler;
  std::span<const std::string_view> stops;  // read during start() only
  /// Tokens that end the text beside the model's own, at most kMaxEndTokens; read during start() only.
  std::span<const std::uint32_t> end_tokens;
};

struct EmbedPrompt {
  std::string_view text;                  // read during embed() only
  std::span<const std::uint32_t> tokens;  // used instead of text when not empty; nothing is added
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  std::optional<Pooling> pooling;  // empty: the model's own
  std::optional<bool> normalize;   // to length 1; empty: as the model says, and not without pooling
};

struct MemoryRegion {
  Region region;
  std::uint64_t bytes;
};

struct Stats {
#define QSF_STAT(type, name, js, meaning) boundary::type name{};
#include "qsf/base/boundary.def"
};

struct SequenceStats {
#define QSF_SEQUENCE_STAT(type, name, js, meaning) boundary::type name{};
#include "qsf/base/boundary.def"
};

/// The instruction sets that this build has kernels for and this machine can run, slowest first; empty behind the last.
std::string_view instruction_set(std::size_t index);

/// Multiplies weights of a format, whatever lies in `memory`, with one column or with as many as a prompt's passes
/// usually have: as many MiB as fit, in segments as a model's. Gives their bytes, each counted once, so that a host
/// with a clock learns how fast this machine computes. Errors: bad_argument for an instruction set, a format or a batch
/// that there is not, or too little memory.
Result<std::uint64_t> try_product(std::span<std::byte> memory, FormatId format, Batch batch, std::string_view isa,
                                  const Workers& workers);

class Session;

/// A session in `memory`, which must stay in place: the budget without kHostReserve. Steps until Step::ready.
Result<Session*> open_session(std::span<std::byte> memory, std::uint64_t file_size, const OpenOptions& options);

/// Calls below are made from one thread, except complete() and fail(), which may come from others, also at once.
/// `sequence` is below OpenOptions::sequences; a call with another one fails, or gives what an empty sequence would.
class Session {
 public:
  Step step();
  /// What the last step was about, after logits, token and done.
  std::uint32_t sequence() const;
  std::optional<ReadRequest> next_request();
  /// Checks and unpacks the bytes. An error here also ends the current step()s with Step::error.
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);

  /// Begins a generation that continues the sequence. One that runs is stopped; others go on.
  Status start(const Prompt& prompt, std::uint32_t sequence = 0);
  /// Begins an embedding of a text, with which the sequence begins anew. Steps give Step::embedding, once, or without
  /// pooling for each pass, then Step::done.
  Status embed(const EmbedPrompt& prompt, std::uint32_t sequence = 0);
  /// Stops a generation or an embedding where it is; the sequence keeps its tokens, also those not fed yet.
  void stop(std::uint32_t sequence = 0);
  /// Forgets all but the first n tokens of the sequence.
  Status rewind(std::uint32_t n, std::uint32_t sequence = 0);
  /// Asks for every pinned segment; step() gives ready when they are there. Ends all generations.
  Status preload();

  const Error& error() const;             // after Step::error; every generation has ended
  std::uint32_t token() const;            // after Step::token
  std::string_view piece() const;         // after Step::token or Step::done: text that may be shown now
  std::span<const float> logits() const;  // [n, vocab_size]: after Step::logits; after Step::done the last computed row
  /// After Step::embedding, until the next step(): [dim]; without pooling [n, dim], last hidden states of the next n
  /// positions.
  std::span<const float> embedding() const;
  /// Of the sequence, also those not fed yet.
  std::span<const std::uint32_t> tokens(std::uint32_t sequence = 0) const;
  End end(std::uint32_t sequence = 0) const;
  SequenceStats sequence_stats(std::uint32_t sequence = 0) const;
  /// Hex, of the current or last generation's logits.
  std::string_view logits_hash(std::uint32_t sequence = 0);
  /// What the last step() of a generation did, for hosts that measure their steps.
  Work work() const;

  Stats stats() const;
  std::span<const MemoryRegion> memory_map() const;
  std::span<const KernelCount> kernel_counts() const;
  /// From now on products of one column, or of many, with weights of that format are another instruction set's, which
  /// gives the same bits; whatever OpenOptions::isa says. bad_argument for one, a format or a batch that there is not
  /// here. In WebAssembly, whose modules have one instruction set, nothing changes.
  Status use_kernel(FormatId format, Batch batch, std::string_view isa);
  /// With Observe::products: what entered every product so far.
  std::span<const Observed> observed() const;
  /// With Observe::layers or more: what every layer did so far.
  std::span<const ObservedLayer> observed_layers() const;
  /// With Observe::layers or more: from the next pass on this layer gives what it gets, all others what they compute.
  void skip_layer(std::optional<std::uint32_t> layer);
  std::span<const SegmentEntry> segments() const;  // of the file, once it is open
  bool is_pinned(std::uint32_t segment) const;
  std::string_view model_hash() const;  // hex SHA-256 over header, index, directory and tables
  /// As Tokenizer::encode().
  Result<std::uint32_t> tokenize(std::string_view text, bool special, std::span<std::uint32_t> out,
                                 std::span<const TextRange> plain = {});
  /// The bytes that a token stands for: part of a character at times. Valid as long as the session.
  std::string_view detokenize(std::uint32_t token) const;
  /// What the model expects in front of a text; empty for nothing.
  std::optional<std::uint32_t> begin_token() const;
  /// A text of the file's metadata by its key (kMetaChatTemplate, kMetaChatTokens); empty where there is none. Valid as
  /// long as the session.
  std::string_view metadata(std::string_view key) const;

 private:
  friend Result<Session*> open_session(std::span<std::byte>, std::uint64_t, const OpenOptions&);
  struct Impl;
  Impl* impl_ = nullptr;
};

}  // namespace qsf
