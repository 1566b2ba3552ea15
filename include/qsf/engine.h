// The C++ interface for hosts. A Session is one open model with a fixed number of sequences, in a block of memory from
// the host. It does no I/O, starts no threads, reads no clock, throws nothing and, once open, allocates nothing. The
// host's loop:
//
//   while (true) switch (session.step()) {
//     case Step::working:    issue requests(session); break;            // more to do, call again
//     case Step::need_bytes: issue requests(session); wait for one; break;
//     case Step::token:      show(session.piece()); break;
//     case Step::done: case Step::error: case Step::ready: return;
//   }
//
// Issuing requests means to call session.next_request() until it is empty. Each read ends with
// session.complete(ticket) or session.fail(ticket, e). If several sequences run, session.sequence() is the one that a
// step belongs to, and Step::ready means that none runs.
#pragma once

#include <atomic>
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
#include "qsf/run/guesses.h"
#include "qsf/run/logprobs.h"
#include "qsf/run/sampling.h"
#include "qsf/run/saved.h"
#include "qsf/stream/read_request.h"
#include "qsf/text/tokenizer.h"

namespace qsf {

/// The bytes of every budget that stay outside the arena, for the host's stack and static data. The number is the same
/// natively and in WebAssembly, so that the same budget gives the same plan.
inline constexpr std::uint64_t kHostReserve = 1u << 20;

/// The options of boundary.def, and those that are not numbers.
struct OpenOptions {
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  /// Empty: f16, or f32 for a model of f32 weights. If max_seq_len tokens, or 256 if it is 0, do not fit in the budget,
  /// the type is 8bit or else 4bit, which Stats::warning reports.
  std::optional<KvType> kv;
  std::string_view isa;  // empty: the best
  /// The whole file in the host's memory, mapped for as long as the session exists; empty: not mapped. Matrices that
  /// are stored as kernels read them are then used in place and take no memory of the session. The request for such a
  /// matrix has its own address as `into`, which must not be written.
  std::span<const std::byte> mapped;
  /// Ends the tokenization of a text with `cancelled` when it becomes true; null: never. Tokenization is the only call
  /// whose time grows with a text. Any thread or signal handler may set it at any time.
  const std::atomic<bool>* cancel = nullptr;
  Observe observe = Observe::nothing;
  /// Whether the host computes the file's bytes and checks them itself. Checksums of segments are then not compared,
  /// because the tables may not have them yet.
  bool vouched = false;
  GuessSource guess_source = GuessSource::text;
  std::uint64_t host_bytes = 0;   // of the budget, taken by the host in addition to kHostReserve
  std::uint64_t draft_bytes = 0;  // of the budget, taken by a draft model
  ObservedRoom observed_room;     // required for Observe::products
  Workers workers;
};

struct Prompt {
  std::string_view text;                  // read during start() only
  std::span<const std::uint32_t> tokens;  // if not empty, replace the text; nothing is added
#define QSF_PROMPT_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  SamplerOptions sampler;                   // whose lists must outlive the generation
  std::span<const std::string_view> stops;  // read during start() only
  /// Tokens that end the text in addition to the model's own, at most kMaxEndTokens; read during start() only.
  std::span<const std::uint32_t> end_tokens;
  /// The only tokens that may be sampled: token t is bit t % 64 of word t / 64; empty: all. Must outlive the
  /// generation. The host may change the bits after each Step::token, before the next step. The generation ends with
  /// End::stop if no token is left, because no bit is set or a bias of -infinity excludes the tokens of all bits. A
  /// token that is the only one is taken without logits, so that one pass computes a run of them, unless the prompt
  /// asks for log-probabilities, a hash or all logits. The text is the same.
  std::span<const std::uint64_t> allowed;
  /// Tokens that probably come next; null: none are known. With OpenOptions::guesses they are guessed. Must outlive the
  /// generation. The host may change them as the bits of `allowed`.
  const ExpectedTokens* expected = nullptr;
};

struct EmbedPrompt {
  std::string_view text;                  // read during embed() only
  std::span<const std::uint32_t> tokens;  // if not empty, replace the text; nothing is added
#define QSF_EMBED_OPTION(type, name, js, fallback, least, most, meaning) boundary::type name = fallback;
#include "qsf/base/boundary.def"
  std::optional<Pooling> pooling;  // empty: the model's own
  std::optional<bool> normalize;   // to length 1; empty: the model's own, and false without pooling
  /// The number of tokens before the second text of a pair, whose score is wanted (see qsf/chat/rerank.h).
  std::optional<std::uint32_t> second_from;
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

/// Returns an instruction set that has kernels in this build and runs on this machine, by index, slowest first. Returns
/// an empty text after the last.
std::string_view instruction_set(std::size_t index);

/// Multiplies weights of a format with one column, or with the usual number of columns of a prefill, so that a host
/// with a clock can measure this machine. The weights are the bytes in `memory`, in segments of the usual size, as many
/// as fit. Returns their bytes, each counted once. Errors: bad_argument for an unknown instruction set, format or
/// batch; out_of_memory if `memory` is too small.
Result<std::uint64_t> try_product(std::span<std::byte> memory, FormatId format, Batch batch, std::string_view isa,
                                  const Workers& workers);

class Session;

/// Begins a session in `memory`, which is the budget without kHostReserve, must outlive the session and must not move.
/// Call step() until Step::ready. Errors: bad_argument for an option, truncated for a file that is too short,
/// budget_too_small.
Result<Session*> open_session(std::span<std::byte> memory, std::uint64_t file_size, const OpenOptions& options);

/// One thread makes all calls, except complete() and fail(), which any threads may call at any time. `sequence` must be
/// less than OpenOptions::sequences; with another number a call fails with bad_argument, or returns the values of an
/// empty sequence.
class Session {
 public:
  Step step();
  /// Returns the sequence that the last step belongs to, after Step::logits, token, embedding and done.
  std::uint32_t sequence() const;
  std::optional<ReadRequest> next_request();
  /// Checks and unpacks the bytes of a request. An error is also the result of the next step(), as Step::error.
  Status complete(std::uint32_t ticket);
  void fail(std::uint32_t ticket, const Error& error);

  /// Begins a generation that continues the sequence, or begins it anew (Prompt::anew) and then reuses the computed
  /// tokens that the prompt begins with, also those of another sequence. A refused prompt changes no token. Stops a
  /// generation of the same sequence; other sequences go on.
  Status start(const Prompt& prompt, std::uint32_t sequence = 0);
  /// Clears the sequence and begins an embedding of a text. Steps return Step::embedding once, or without pooling once
  /// for each pass, and then Step::done. A model that scores pairs of texts makes one value, the score,
  /// of a prompt with `second_from`, and last hidden states without pooling.
  Status embed(const EmbedPrompt& prompt, std::uint32_t sequence = 0);
  /// Whether the model scores pairs of texts, and makes no text.
  bool scores() const;
  /// Stops a generation or an embedding. The sequence keeps its tokens, including those that are not fed yet.
  void stop(std::uint32_t sequence = 0);
  /// Returns the number of tokens that the host could guess for the next pass of a generation, with GuessSource::host:
  /// 0 inside a pass, while an earlier guess may still be right, before the first generated token, after guess() until
  /// the text has another token, and if the prompt's own `expected` has tokens. The number follows the guesses that
  /// were right, and is 0 for a while if they cost more than they save.
  std::uint32_t guesses_wanted(std::uint32_t sequence = 0) const;
  /// Sets the work of a guess, as pass_work() of the model that guesses, for later generations. Guesses of this model
  /// are known from the plan; those of a host have no work until then. Guesses that cost more than they save are
  /// paused; those without work never are.
  void set_guess_work(double work);
  /// Returns the work of a token: the bytes of weights that are computed with, and those that are read, which count
  /// several times because reading is slower.
  double pass_work() const;
  /// Gives tokens that probably follow those of the sequence, for its next pass; none if none is known. Takes as many
  /// as are wanted, and none after one that is not in the vocabulary. Wrong ones change no text. No other call may
  /// change the sequence in between.
  void guess(std::span<const std::uint32_t> tokens, std::uint32_t sequence = 0);
  /// Forgets all tokens of the sequence except the first n, and stops its generation. Fails with bad_argument if it has
  /// fewer.
  Status rewind(std::uint32_t n, std::uint32_t sequence = 0);
  /// Lowers OpenOptions::kv_window to `positions`, for all sequences and until the session ends: evicts by the policy
  /// as if that had been its number from now on. What was computed stays as it is. Returns false if it has to be called
  /// again after a later step, because a pass is under way, or because SnapKV evicts when its slots are full. Errors:
  /// bad_argument for too few positions; unsupported without a policy, or if attention has all positions to choose
  /// from.
  Result<bool> shrink(std::uint32_t positions);
  /// Returns memory of a sequence that shrink() freed and no call uses any more. The host may release its pages.
  std::span<std::byte> unused(std::uint32_t sequence = 0) const;
  /// Begins to save the first n tokens of a sequence, with the memory of those that are computed and can be returned
  /// to. The file is the returned header, the host's note, and the payload that save() gives. Errors:
  /// bad_argument for more tokens than there are or a note of more than kMaxNoteBytes; unsupported for a model that
  /// only makes embeddings.
  Result<SavedHeaderBytes> begin_save(const NoteSum& note = {}, std::uint32_t n_tokens = kAllTokens,
                                      std::uint32_t sequence = 0);
  /// Writes the next bytes of the payload and returns their number, which is less than `into` has room for at the end,
  /// and then 0. Fails with bad_state if the sequence has changed since begin_save().
  Result<std::size_t> save(std::span<std::byte> into);
  /// Begins to replace a sequence by a saved one, whose file begins with `header` and has `file_bytes`. Nothing changes
  /// yet. Errors: those of read_saved_header(); mismatch for another model, KV type or kind of context; context_full
  /// for more tokens than the context; bad_state while the sequence is computed.
  Status begin_restore(std::span<const std::byte> header, std::uint64_t file_bytes, std::uint32_t sequence = 0);
  /// Takes the next bytes of the payload, which come twice in pieces of any size that do not cross its end: first to be
  /// checked, then to be kept. Returns true once the sequence is restored. A failure of the check changes nothing;
  /// after a later one the sequence is empty. Errors: bad_checksum, bad_token, bad_argument for more bytes than there
  /// are, bad_state if the sequence has changed since begin_restore().
  Result<bool> restore(std::span<const std::byte> bytes);
  /// Requests every pinned segment; step() returns Step::ready when they are resident. Ends all generations.
  Status preload();

  const Error& error() const;   // after Step::error; every generation has ended
  std::uint32_t token() const;  // after Step::token
  /// After Step::token, if the prompt asked for them: the log-probability of the token, and then those of the likeliest
  /// tokens in their order. They are the model's own, before `allowed`, biases and samplers.
  std::span<const TokenLogprob> logprobs() const;
  std::string_view piece() const;         // after Step::token or Step::done: text that may be shown now
  std::span<const float> logits() const;  // [n, vocab_size]: after Step::logits; after Step::done the last computed row
  /// After Step::embedding, until the next step(): [dim]; without pooling [n, dim], the last hidden states of the next
  /// n positions.
  std::span<const float> embedding() const;
  /// Returns the sequence's tokens, including those that are not fed yet.
  std::span<const std::uint32_t> tokens(std::uint32_t sequence = 0) const;
  End end(std::uint32_t sequence = 0) const;
  SequenceStats sequence_stats(std::uint32_t sequence = 0) const;
  /// Returns the SHA-256 of the current or last generation's logits, in hex.
  std::string_view logits_hash(std::uint32_t sequence = 0);
  /// Returns the kind of the last step's work in a generation, for hosts that measure steps.
  Work work() const;

  Stats stats() const;
  std::span<const MemoryRegion> memory_map() const;
  std::span<const KernelCount> kernel_counts() const;
  /// Computes later products of one column, or of many, with weights of a format by the kernels of another instruction
  /// set, which compute the same bits. Takes precedence over OpenOptions::isa. Fails with bad_argument for an unknown
  /// instruction set, format or batch. Changes nothing in WebAssembly, whose modules have one instruction set.
  Status use_kernel(FormatId format, Batch batch, std::string_view isa);
  /// With Observe::products: the sums over the inputs of every product so far.
  std::span<const Observed> observed() const;
  /// With Observe::layers or products: the effect of every layer so far.
  std::span<const ObservedLayer> observed_layers() const;
  /// With Observe::layers or products: from the next pass on, the output of this layer is its input. Empty: no layer is
  /// skipped.
  void skip_layer(std::optional<std::uint32_t> layer);
  std::span<const SegmentEntry> segments() const;  // of the file, after the session has opened
  bool is_pinned(std::uint32_t segment) const;
  /// Whether the segment is read when a text needs it, instead of by every pass.
  bool is_by_text(std::uint32_t segment) const;
  std::string_view model_hash() const;  // hex SHA-256 over header, index, directory and tables
  /// Replaces the hash by that of the whole file. A file whose checksums were not all known when it was opened
  /// (OpenOptions::vouched) needs this before its sequences are saved or restored. Fails with bad_argument for a text
  /// that is no SHA-256 in hexadecimal.
  Status know_hash(std::string_view hash);
  /// Does what Tokenizer::encode() does. With `begins`, its begin token is begin_token(). Fails with bad_text if the
  /// file has no tokenizer.
  Result<std::uint32_t> tokenize(std::string_view text, bool special, std::span<std::uint32_t> out,
                                 std::span<const TextRange> plain = {}, bool begins = false);
  /// Returns the bytes of a token, which may be a part of a character; of a control token only with `special`. Valid as
  /// long as the session.
  std::string_view detokenize(std::uint32_t token, bool special = false) const;
  /// Whether the token is one of the model's own ends.
  bool is_end(std::uint32_t token) const;
  std::span<const std::uint32_t> end_tokens() const;
  /// Whether the token was added to the vocabulary, such as <|im_start|>. An ordinary text does not become one.
  bool is_added(std::uint32_t token) const;
  /// Returns the token that the model expects before a text; empty if it expects none.
  std::optional<std::uint32_t> begin_token() const;
  /// Returns the token that the model expects after a prompt or a text to embed with these ids, which begin with
  /// begin_token(); empty if it expects none, or if the ids end with it.
  std::optional<std::uint32_t> closing_token(std::span<const std::uint32_t> ids) const;
  /// Returns the text of a token that chat templates name, such as "eos_token": of the file's metadata, or else of the
  /// begin, end or padding token of the vocabulary. Empty if there is none. Valid as long as the session.
  std::string_view special_token(std::string_view name) const;
  /// Returns a text of the file's metadata by its key (kMetaChatTemplate, kMetaChatTokens), or an empty text. Valid as
  /// long as the session.
  std::string_view metadata(std::string_view key) const;
  /// Returns the memory for chat templates, conversations and grammars: OpenOptions::text_bytes and the free bytes of
  /// the plan. The host uses it as it likes, and the session never does. Empty before the session has opened.
  std::span<std::byte> text_memory() const;

 private:
  friend Result<Session*> open_session(std::span<std::byte>, std::uint64_t, const OpenOptions&);
  struct Impl;
  Impl* impl_ = nullptr;
};

}  // namespace qsf
