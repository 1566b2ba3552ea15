// What a session holds: the parts of an open model, and one generation. open.cpp brings the parts in, session.cpp runs.
#pragma once

#include <array>
#include <atomic>

#include "base/arena.h"
#include "model/forward.h"
#include "model/weights.h"
#include "qsf/base/checksum.h"
#include "qsf/engine.h"
#include "qsf/text/tokenizer.h"
#include "run/sampler.h"
#include "stream/plan.h"
#include "stream/streamer.h"
#include "text/text_stream.h"

namespace qsf {

struct Session::Impl {
  enum class Phase : std::uint8_t { opening, ready, preloading, prefill, decode, finished, failed };
  enum class Opening : std::uint8_t { header, front, sections, planned };

  /// Reads of an opening have tickets with this bit; the rest is the position in `reads`.
  static constexpr std::uint32_t kOpeningTicket = 1u << 31;
  struct Read {
    ReadRequest request;
    std::atomic<bool> issued, done;
  };

  Arena arena;
  std::uint64_t budget = 0;
  std::uint64_t file_size = 0;
  OpenOptions options;
  const Kernels* kernels = nullptr;
  Phase phase = Phase::opening;
  bool open = false;  // the plan stands
  Error error;
  std::atomic<bool> failed{false};
  std::atomic_flag failing;  // guards `async_error` against two failures at once
  Error async_error;

  // Opening
  Opening opening = Opening::header;
  std::array<Read, 8> reads;
  std::uint32_t n_reads = 0;
  std::span<std::byte> header_bytes, directory_bytes, index_bytes;
  std::span<std::byte> tensor_bytes, segment_bytes, meta_bytes, tokenizer_bytes, rope_bytes;
  std::span<SectionEntry> sections;
  std::span<LayerEntry> layers;
  std::span<TensorEntry> tensors;
  std::span<SegmentEntry> segments;
  std::uint64_t opening_bytes = 0;

  // The open model
  FileTables tables;
  Config config;
  Plan plan;
  Weights weights;
  Streamer streamer;
  Forward forward;
  Tokenizer tokenizer;
  std::span<std::byte> tokenizer_scratch;
  std::span<Candidate> candidates;  // [vocab_size]
  std::array<char, 65> model_hash{};
  std::array<MemoryRegion, kRegionNames.size()> map{};
  std::size_t n_map = 0;
  std::uint64_t weight_bytes = 0;
  std::uint32_t n_pinned = 0;

  // The sequence and the generation
  std::span<std::uint32_t> tokens;  // [max_seq_len]
  std::uint32_t n_tokens = 0;       // known: fed, or still to be fed
  std::uint32_t position = 0;       // fed: in the KV cache
  std::uint32_t kv_high = 0;        // positions that were ever written since the cache was last begun anew
  bool passing = false;             // a pass is under way
  std::uint32_t pass_columns = 0;
  std::uint32_t max_tokens = 0, n_generated = 0, n_prompt = 0;
  bool all_logits = false, hash_logits = false, ignore_eos = false, by_eos = false;
  End end = End::none;
  std::uint32_t token = 0;
  Work work = Work::embed;
  std::string_view piece;
  Sampler sampler;
  TextStream text;
  Sha256 logits_sha;
  std::array<char, 65> logits_hash{};

  Step fail_with(const Error& e) {
    error = e;
    phase = Phase::failed;
    return Step::error;
  }
  void fail_async(const Error& e);

  // open.cpp
  void read(std::uint64_t offset, std::uint32_t size, std::byte* into);
  void read(std::uint64_t offset, std::uint32_t size, std::byte* into, std::uint32_t crc);
  bool reads_done() const;
  Status open_step();
  Status ask_front();
  Status ask_sections();
  Status plan_memory();
  Error tables_too_large() const;

  // session.cpp
  Step prefill_step();
  Step decode_step();
  Step advance_pass();
  void begin_pass(std::uint32_t n, std::uint32_t logits_rows);
  void take_logits();
  void go_back(std::uint32_t n);
  Step sample_token();
  Step finish();
};

/// Lower-case hex of a digest, with a terminating zero.
std::array<char, 65> hex(const Sha256Digest& digest);

}  // namespace qsf
