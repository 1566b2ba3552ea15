// The modes of qsf-run, of which a command line selects one: a table with the flag of each, the options that go with it
// and its function. Mistakes between modes and options follow from the table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace qsf::run {

struct Options;
struct Job;

/// `generate` has no flag. `plan` is --memory-map without anything to compute.
enum class Mode : std::uint8_t {
  generate,
  tokenize,
  detokenize,
  count,
  chat,
  interactive,
  bench,
  perplexity,
  render,
  embed,
  rerank,
  accepts,
  plan
};
inline constexpr std::size_t kModes = static_cast<std::size_t>(Mode::plan) + 1;

/// Options that modes take or refuse together, as bits. Rules between options of the same mode are in option_rules.h.
enum Group : std::uint32_t {
  kText = 1 << 0,  // --prompt, --prompt-file
  kMessage = 1 << 1,
  kTokens = 1 << 2,
  kSystemPrompt = 1 << 3,
  kGrammar = 1 << 4,  // --grammar, --json-schema, --regex
  kSession = 1 << 5,
  kPromptCache = 1 << 6,
  kLogits = 1 << 7,
  kReceipt = 1 << 8,
  kLogprobs = 1 << 9,
  kWindows = 1 << 10,   // --window, --windows, --sequences
  kSaved = 1 << 11,     // --kl, --save-logits
  kPooling = 1 << 12,   // --pooling, --normalize
  kSampling = 1 << 13,  // the options of SamplingOptions
  kOtherMode = 1 << 14,
  kAnswers = 1 << 15,
  kLength = 1 << 16,    // --max-tokens
  kEnds = 1 << 17,      // --stop, --ignore-eos
  kGuesses = 1 << 18,   // --speculate
  kThoughts = 1 << 19,  // --reasoning, --reasoning-budget
  kHeld = 1 << 20,      // --tool-choice
};
using Groups = std::uint32_t;

// Sentences that a rule of option_rules.h says too.
inline constexpr const char *kAcceptsTakes =
                                "--accepts only checks a text: it goes with --grammar, --json-schema or --regex",
                            *kRerankTakes = "--rerank makes no text: it goes with a file of documents only",
                            *kDetokenizeTakes = "--detokenize takes --tokens",
                            *kSystemTakes = "--system-prompt is for --chat or one prompt of text",
                            *kBeginsText = "--prompt-cache is for prompts that begin a text, and these continue one",
                            *kLogprobsNeed = "--logprobs are written by --receipt for one prompt",
                            *kThoughtsTake =
                                "--tools, --reasoning and --reasoning-budget are for --chat, --message and "
                                "--system-prompt";

/// The sentence of a mode about groups that it does not take, in place of the groups' own sentences.
struct Refusal {
  Groups groups = 0;
  const char* sentence = "";
};

struct ModeRow {
  Mode mode = Mode::generate;
  const char* flag = "";
  const char* value = "";  // what follows the flag: FILE, QUERY, or nothing
  const char* help = "";
  bool computes = false;      // runs the model, not only its tokenizer or template
  bool needs_prompt = false;  // reads standard input if no text or tokens are given
  Groups takes = 0;
  std::array<Refusal, 2> refuses{};
  /// Runs the mode with an open model and returns the program's exit code. Null for a mode without a model.
  int (*run)(Job& job) = nullptr;
  /// The same without a model. Null for a mode that always has one.
  int (*run_alone)(const Options& options) = nullptr;
};

/// Returns all modes, in the order of Mode.
std::span<const ModeRow> modes();
const ModeRow& row_of(Mode mode);

/// Returns a sentence if more than one of these modes was selected.
std::optional<std::string> mode_mistake(std::span<const Mode> selected);
/// Returns a sentence if an option was given that does not go with the mode.
std::optional<std::string> group_mistake(const Options& options);

}  // namespace qsf::run
