// qsf-run's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/host.h"
#include "native/run_terminal.h"

namespace qsf::run {

struct Options {
  std::string model;
  HostOptions host;
  std::string isa, source;  // what host.open.isa and host.source.kind look at
  std::string kernel_file;  // as it is given

  std::optional<std::string> prompt;  // given, or read from prompt_file or standard input once the model is open
  std::string prompt_file;
  std::optional<std::string> system_prompt;
  bool prompt_from_input = false;
  std::vector<std::uint32_t> tokens;
  std::vector<std::string> texts;  // to embed
  std::optional<Pooling> pooling;
  std::optional<bool> normalize;
  std::uint32_t max_tokens = 256;
  bool ignore_eos = false;
  SamplerOptions sampler;
  std::vector<std::string> stops;

  bool chat = false, interactive = false, bench = false, verbose = false, memory_map = false, tokenize = false,
       detokenize = false, embed = false;
  std::string perplexity_file;  // the text to measure with
  std::string kl_file, save_logits_file;
  std::uint32_t window = 512, windows = 0;
  Color color = Color::automatic;
  std::string logits_file, receipt_file;

  /// Whether a prompt is still to be read.
  bool reads_prompt() const { return prompt_from_input || !prompt_file.empty(); }
  /// Whether there is anything to compute, or only something to show.
  bool generates() const {
    return !tokenize && !detokenize &&
           (prompt || !texts.empty() || reads_prompt() || !tokens.empty() || chat || interactive || bench ||
            !perplexity_file.empty());
  }
};

/// Reads the arguments and QSF_ISA. An exit code when the program is to end here: 0 after --help, --version and
/// --completion, 2 after a mistake, which is told on stderr.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace qsf::run
