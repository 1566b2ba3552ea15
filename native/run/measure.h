// Measuring a model: whole generations, each from an empty sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "native/run/generate.h"

namespace qsf::run {

struct Round {
  Generation made;
  std::uint64_t bytes_read = 0;
  std::uint64_t experts_chosen = 0, experts_found = 0, expert_bytes = 0;  // as in Stats

  double prompt_rate() const;      // tokens/s; the prompt's time ends with the first token
  double generation_rate() const;  // of the tokens after the first
};

/// Reads every weight that stays in memory.
Status warm_up(Host& host);
/// Runs one generation from an empty sequence. A cancelled one is an error.
Result<Round> measure(Host& host, const Prompt& prompt);

/// Returns `n` ids. All ids cost the same; these differ, so that they use more than one row of the embedding.
std::vector<std::uint32_t> filler_tokens(std::uint32_t n, std::uint32_t vocab_size);

double median(std::vector<double> values);

}  // namespace qsf::run
