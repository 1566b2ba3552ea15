// The perplexity of a model on a text, over windows, as llama.cpp's llama-perplexity counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "native/cli/logits_file.h"
#include "native/cli/scores.h"
#include "native/run/options.h"
#include "native/run/output.h"

namespace qsf::run {

/// The comparison with another model's saved logits.
struct Divergence {
  double mean = 0, quantile_99 = 0;  // Kullback-Leibler of this model from that one, in nats per token
  double same_top = 0;               // share of positions with the same likeliest token
  double perplexity_ratio = 0;       // this model's divided by that one's
};

struct Perplexity {
  double value = 0, standard_error = 0;
  std::uint64_t counted = 0;  // tokens
  std::uint32_t window = 0, windows = 0;
  std::uint32_t ids_crc = 0;  // as in LogitsShape
  std::string logits_hash;    // SHA-256 of the windows' hashes in order; empty unless requested
  std::optional<Divergence> divergence;
  double seconds = 0;
};

/// The inputs of a measurement, read before the model is opened.
struct Measured {
  std::string text;
  bool context_asked = false;  // with --max-seq-len; otherwise it is a window
  std::optional<LogitsReader> base;
};

/// Reads the text and the saved logits, and sets the options of opening the host. Takes text and ids from the budget.
Result<Measured> read_measured(Options& options);

/// Computes the windows and writes their logits to `save`, unless it is null. Errors: not_finite; bad_argument for a
/// text or a window that does not fit the model.
Result<Perplexity> measure_perplexity(const Options& options, Host& host, Measured& measured, OutputFile* save);

}  // namespace qsf::run
