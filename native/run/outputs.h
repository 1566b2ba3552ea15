// The files that a run of qsf-run reads and writes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "native/host/host.h"
#include "native/run/generate.h"
#include "native/run/options.h"
#include "native/run/output.h"
#include "native/run/perplexity.h"

namespace qsf::run {

/// Returns the paths of the files that the options read, which no output may replace.
std::vector<std::string> inputs_of(const Options& options);

/// The files of logits and of the receipt, opened before the run begins.
struct Outputs {
  std::optional<OutputFile> logits, receipt;

  /// Opens the files that the options name. Errors: those of OutputFile::create(); bad_argument if both are one file.
  Status open(const Options& options, const Host& host);
  /// Writes the receipt, and moves both files to their places.
  Status finish(const Options& options, Host& host, std::span<const Generation> made);
  Status finish(const Options& options, Host& host, const Perplexity& made);
};

}  // namespace qsf::run
