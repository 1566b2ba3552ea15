// How well a model knows a text: perplexity over windows, as llama.cpp's llama-perplexity counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "native/run_logits_file.h"
#include "native/run_options.h"
#include "native/run_output.h"
#include "native/run_scores.h"

namespace qsf::run {

/// Against saved logits of another model.
struct Divergence {
  double mean = 0, quantile_99 = 0;  // Kullback-Leibler of this model from that one, in nats per token
  double same_top = 0;               // share of positions whose likeliest token is the same
  double perplexity_ratio = 0;       // this model's by that one's
};

struct Perplexity {
  double value = 0, standard_error = 0;
  std::uint64_t counted = 0;  // tokens
  std::uint32_t window = 0, windows = 0;
  std::uint32_t ids_crc = 0;  // as in LogitsShape
  std::string logits_hash;    // SHA-256 of the windows' hashes in order; empty unless asked for
  std::optional<Divergence> divergence;
  double seconds = 0;
};

/// What is measured with, read before the model is opened.
struct Measured {
  std::string text;
  bool context_asked = false;  // by --max-seq-len, else it is a window
  std::optional<LogitsReader> base;
};

/// Reads text and saved logits, and sets what the host is to be opened with. Text and ids lie in the budget.
Result<Measured> read_measured(Options& options);

/// Computes the windows. `save`: gets their logits. bad_argument for a text or a window that does not fit the model.
Result<Perplexity> measure_perplexity(const Options& options, Host& host, Measured& measured, OutputFile* save);

}  // namespace qsf::run
