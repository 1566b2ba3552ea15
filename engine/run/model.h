// An open model: everything that its sequences share. opening.h reads it from a file.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "model/pass.h"
#include "qsf/engine.h"
#include "qsf/text/tokenizer.h"
#include "run/logprobs.h"
#include "run/sequence.h"

namespace qsf {

struct Model;

/// The hash of a file's tables, which saved sequences name.
struct ModelHash {
  Sha256Digest digest{};
  std::array<char, 65> text{};  // the digest in hexadecimal
  bool is_known = true;         // the file's checksums were all known

  void set(const Sha256Digest& to) {
    digest = to;
    text = hex(to);
  }
};

/// The bytes of each region, in the order of Region.
class MemoryMap {
 public:
  void add(Region region, std::uint64_t bytes) { regions_[n_++] = {region, bytes}; }
  std::span<const MemoryRegion> regions() const { return std::span(regions_).first(n_); }

 private:
  std::array<MemoryRegion, kRegionNames.size()> regions_{};
  std::size_t n_ = 0;
};

/// The parts of a model whose memory depends on the plan.
struct Planned {
  Streamer streamer;
  SequenceMemory memory;
  Pass pass;
  Logprobs logprobs;  // of the last token
  std::span<Sequence> sequences;
  std::span<Column> columns;             // [chunk]
  std::span<std::uint32_t> prompt_room;  // [max_seq_len], for a prompt that begins a sequence anew
  std::uint32_t guesses = 0;             // most guessed tokens of a sequence in a pass
  std::uint32_t guess_layers = 0;        // first layers that guess them; 0: none do
  bool guesses_by_head = false;          // the model's own layer guesses them

  /// Takes all that memory, for a session with these options. A dry arena and no pins measure a plan. The model must
  /// outlive this object.
  Status init(Arena& arena, const Model& model, const OpenOptions& opened, const Plan& by,
              std::span<const bool> pinned);
};

struct Model : Planned {
  const Kernels* kernels = nullptr;
  OpenOptions options;
  FileTables tables;
  Config config;
  Weights weights;
  Program program;
  Plan plan;
  Tokenizer tokenizer;
  std::span<std::byte> tokenizer_scratch;
  std::span<const std::byte> meta;  // the META section
  std::span<Candidate> candidates;  // [vocab_size]
  std::span<const Column> in_pass;  // those of the current pass
  ModelHash hash;
  MemoryMap map;
  std::uint64_t weight_bytes = 0;
  double pass_work = 0;          // Session::pass_work(), without guesses
  double column_work = 0;        // of a guessed token's column in a pass
  GuessCost guess_cost;          // in parts of pass_work
  std::uint32_t n_segments = 0;  // that passes use, and of those that stay
  std::uint32_t n_pinned = 0;
  Error warning;                        // about the plan; an empty sentence: none
  std::array<char, 56> longer_chunk{};  // the advice if a chunk that was asked for limits texts

  /// Returns a text of the metadata, or an empty text.
  std::string_view metadata(std::string_view key) const;
  /// Returns the token that the model expects before a text; empty if it expects none or there is no tokenizer.
  std::optional<std::uint32_t> begin_token() const {
    const bool expected = tokenizer.open_for_use() && tokenizer.add_bos() && config.bos < config.vocab_size;
    return expected ? std::optional(config.bos) : std::nullopt;
  }
  /// Returns the token that the model expects after a text of these ids; empty if they end with it, if it expects none
  /// or if there is no tokenizer. `begins`: the ids begin with the begin token, if the model expects one.
  std::optional<std::uint32_t> closing_token(std::span<const std::uint32_t> ids, bool begins) const {
    const std::uint32_t eos = tables.header.eos;
    const bool expected = tokenizer.open_for_use() && tokenizer.add_eos() && eos < config.vocab_size;
    const std::size_t n_begin = begins && begin_token() ? 1 : 0;
    const bool ends = ids.size() > n_begin && ids.back() == eos;
    return expected && !ends ? std::optional(eos) : std::nullopt;
  }
  /// Returns who guesses the tokens of a generation.
  GuessSource guess_source() const {
    return options.guess_by_layers ? GuessSource::layers
           : options.guess_by_head ? GuessSource::head
                                   : options.guess_source;
  }
  /// Sets guess_cost by the work of the model that guesses. A state is computed again after a right guess.
  void set_guess_work(double work) {
    guess_cost.each = static_cast<float>((work + column_work) / pass_work);
    guess_cost.right = memory.has_states() ? static_cast<float>(column_work / pass_work) : 0;
  }
  std::uint64_t text_bytes(const OpenOptions& opened, std::uint32_t max_seq_len) const;
  /// Returns the ways to make room for more tokens, as part of a sentence.
  std::string_view more_context() const;
  /// Returns context_full with the sentence and that advice.
  Error too_long(const char* sentence) const;
};

}  // namespace qsf
