// qsf-run's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/host.h"

namespace qsf::run {

struct Options {
  std::string model;
  HostOptions host;
  std::string isa, source;  // what host.open.isa and host.source.kind look at

  std::optional<std::string> prompt;
  std::vector<std::uint32_t> tokens;
  std::uint32_t max_tokens = 256;
  bool ignore_eos = false;
  SamplerOptions sampler;
  std::vector<std::string> stops;

  bool interactive = false, bench = false, verbose = false, memory_map = false;
  std::string logits_file, receipt_file;

  /// Whether there is anything to compute, or only the plan to show.
  bool generates() const { return prompt || !tokens.empty() || interactive || bench; }
};

/// Reads the arguments, QSF_ISA and, where nothing else gives a prompt, standard input. An exit code when the program
/// is to end here: 0 after --help and --version, 2 after a mistake, which is told on stderr.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace qsf::run
