// An open model: everything that its sequences share. opening.h reads it from a file.
#pragma once

#include <array>
#include <span>

#include "model/pass.h"
#include "qsf/engine.h"
#include "qsf/text/tokenizer.h"
#include "run/logprobs.h"
#include "run/sequence.h"

namespace qsf {

struct Model {
  const Kernels* kernels = nullptr;
  OpenOptions options;
  FileTables tables;
  Config config;
  Weights weights;
  Program program;
  Plan plan;
  Streamer streamer;
  Lanes lanes;
  Pass pass;
  Tokenizer tokenizer;
  std::span<std::byte> tokenizer_scratch;
  std::span<const std::byte> meta;  // the META section
  std::span<Candidate> candidates;  // [vocab_size]
  Logprobs logprobs;                // of the last token
  std::span<Sequence> sequences;
  std::span<Column> columns;             // [chunk]
  std::span<const Column> in_pass;       // those of the current pass
  std::span<std::uint32_t> prompt_room;  // [max_seq_len], for a prompt that begins a sequence anew
  Sha256Digest digest{};
  std::array<char, 65> hash{};  // the digest in hexadecimal
  bool knows_hash = true;       // the file's checksums were all known
  std::array<MemoryRegion, kRegionNames.size()> map{};
  std::size_t n_map = 0;
  std::uint64_t weight_bytes = 0;
  std::uint32_t n_pinned = 0;
  std::uint32_t guesses = 0;  // most guessed tokens of a sequence in a pass
  Error warning;              // about the plan; an empty sentence: none

  /// Takes all memory whose size depends on the plan, for a session with these options. A dry arena and no pins measure
  /// a plan.
  Status init_planned(Arena& arena, const OpenOptions& opened, const Plan& by, std::span<const bool> pinned);
  /// Returns a text of the metadata, or an empty text.
  std::string_view metadata(std::string_view key) const;
  std::uint64_t text_bytes(const OpenOptions& opened, std::uint32_t max_seq_len) const;
  /// Returns the ways to make room for more tokens, as part of a sentence.
  std::string_view more_context() const;
  /// Returns context_full with the sentence and that advice.
  Error too_long(const char* sentence) const;
};

}  // namespace qsf
