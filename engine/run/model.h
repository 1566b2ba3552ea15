// An open model: what its sequences share. opening.h brings it in.
#pragma once

#include <array>
#include <span>

#include "model/pass.h"
#include "qsf/engine.h"
#include "qsf/text/tokenizer.h"
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
  std::span<Sequence> sequences;
  std::span<Column> columns;  // [chunk]
  std::array<char, 65> hash{};
  std::array<MemoryRegion, kRegionNames.size()> map{};
  std::size_t n_map = 0;
  std::uint64_t weight_bytes = 0;
  std::uint32_t n_pinned = 0;

  /// Everything whose size depends on the plan. Run over a dry arena it is what the plan is made by.
  Status init_planned(Arena& arena, const Plan& by, std::span<const bool> pinned);
};

}  // namespace qsf
