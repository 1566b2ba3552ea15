// The command line of qsf-run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/cli/terminal.h"
#include "native/host/host.h"
#include "native/host/sampler_lists.h"
#include "native/run/modes.h"

namespace qsf::run {

constexpr std::uint32_t kUnlimitedThoughts = 0xFFFFFFFF;

struct Options {
  std::string model;
  HostOptions host;
  std::string isa, source;        // the texts that host.open.isa and host.source.kind view
  std::string kernel_file;        // as given
  std::string quant_type, cache;  // the texts that host.source.quant_type and cache view
  std::string speculate;          // the text that host.draft views
  std::string of_model;           // an option that was given and means nothing without a model
  std::string sha256;             // of the model's bytes, in hexadecimal; empty if it is not checked

  std::optional<std::string> prompt;  // given, or read from prompt_file or standard input once the model is open
  std::string prompt_file;
  std::optional<std::string> system_prompt;
  bool as_message = false;                      // the prompt is a message in the chat template
  std::vector<std::string> files;               // of the first message
  std::vector<std::string> template_arguments;  // NAME=VALUE
  bool prompt_from_input = false;
  std::vector<std::uint32_t> tokens;
  std::vector<std::string> texts;  // to embed
  std::optional<Pooling> pooling;
  std::optional<bool> normalize;
  std::uint32_t max_tokens = 256;
  bool limits_length = false;  // whether --max-tokens was given
  std::uint32_t answers = 1;   // texts of the one prompt
  bool ignore_eos = false;
  bool samples = false;                   // whether an option of sampling was given
  std::optional<std::uint32_t> logprobs;  // in the receipt, with those of so many likeliest tokens
  SamplerOptions sampler;                 // without its lists
  SamplerLists sampler_lists;
  std::vector<std::string> stops;

  Mode mode = Mode::generate;
  std::string mode_value;  // what follows its flag: a file or a query
  bool counts = false;     // with --render: the text's tokens
  bool verbose = false, memory_map = false;
  std::string template_file;  // replaces the model's chat template
  std::string tools_file;     // tools that answers may call
  std::string tool_choice;    // auto, required or a tool's name; empty: calls are not held
  bool shows_thoughts = true;
  std::uint32_t reasoning_budget = kUnlimitedThoughts;  // tokens of a thought
  std::string grammar_file, schema_file, regex;         // rules of a text, of which one at most is given
  std::string session_file;                             // read at the start if it is there, replaced at the end
  std::string prompt_cache;                             // a folder of computed prompts
  std::uint64_t prompt_cache_bytes = 0;                 // that it may have
  std::string kl_file, save_logits_file;
  std::uint32_t window = 512, windows = 0;
  Color color = Color::automatic;
  std::string logits_file, receipt_file;

  /// Returns the options of sampling with their lists, which view this object.
  SamplerOptions sampling() const { return sampler_lists.with(sampler); }
  /// Whether a prompt must still be read.
  bool reads_prompt() const { return prompt_from_input || !prompt_file.empty(); }
  bool has_grammar() const { return !grammar_file.empty() || !schema_file.empty() || !regex.empty(); }
  /// Whether the text continues the sequence of --session, instead of a conversation.
  bool continues() const { return !session_file.empty() && !converses(); }
  bool limits_thoughts() const { return reasoning_budget != kUnlimitedThoughts; }
  /// Whether the chat template is used.
  bool converses() const { return mode == Mode::chat || as_message || system_prompt || mode == Mode::render; }
  /// Whether there is anything to compute, not only something to show.
  bool computes() const { return row_of(mode).computes; }
};

/// Reads the arguments and QSF_ISA. Returns an exit code if the program must end now: 0 after --help, --version and
/// --completion, 2 after a mistake, which is reported on stderr.
std::optional<int> parse(int argc, char** argv, Options& options);

}  // namespace qsf::run
