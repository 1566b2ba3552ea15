// Measuring a model: whole generations, each from an empty sequence.
#pragma once

#include <cstdint>
#include <vector>

#include "native/run_generate.h"

namespace qsf::run {

struct Round {
  Generation made;
  std::uint64_t bytes_read = 0;
  std::uint64_t experts_chosen = 0, experts_found = 0, expert_bytes = 0;  // as Stats has them

  double prompt_rate() const;      // tokens/s; the prompt's time ends with the first token
  double generation_rate() const;  // of the tokens after the first
};

/// Brings in every weight that stays in memory.
Status warm_up(Host& host);
/// One generation from an empty sequence. A cancelled one is an error.
Result<Round> measure(Host& host, const Prompt& prompt);

/// `n` ids. Any cost the same; these differ, so that embedding rows are not all one.
std::vector<std::uint32_t> filler_tokens(std::uint32_t n, std::uint32_t vocab_size);

double median(std::vector<double> values);

}  // namespace qsf::run
