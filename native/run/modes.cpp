#include "native/run/modes.h"

#include <algorithm>

#include "native/host/draft.h"
#include "native/run/accepts.h"
#include "native/run/jobs.h"
#include "native/run/options.h"
#include "native/run/render.h"

namespace qsf::run {
namespace {

constexpr Groups kInputs = kText | kMessage | kTokens;
constexpr Groups kMade = kSampling | kLength | kEnds | kGuesses;  // of texts that are generated
constexpr Groups kGenerated = kMade | kGrammar | kSession | kPromptCache;
constexpr Groups kAnswered = kThoughts | kHeld;
constexpr Groups kEvery = ~Groups{0};

constexpr const char* kNothingToCompute = "--logits and --receipt need something to compute";
constexpr const char* kBenchTakes =
    "--bench shows speeds only: it goes with --prompt, --prompt-file or --tokens, and writes no file";
constexpr const char* kBenchIsGreedy =
    "--bench always takes the likeliest token, so that speeds compare: the options of sampling would change nothing";
constexpr const char* kEmbedTakes =
    "--embed makes no text: it goes with --prompt, --prompt-file, --tokens and --logits only";
constexpr const char* kRenderTakes =
    "--render shows the text of its messages only: it goes with a model, --chat-template and --template-arg";

constexpr std::array<ModeRow, kModes> kRows{{
    {.mode = Mode::generate,
     .computes = true,
     .needs_prompt = true,
     .takes = kInputs | kSystemPrompt | kGenerated | kAnswered | kLogits | kReceipt | kLogprobs | kAnswers,
     .run = run_generate},
    {.mode = Mode::tokenize,
     .flag = "--tokenize",
     .help = "Print the token ids of the prompt, and exit",
     .needs_prompt = true,
     .takes = kText | kMessage | kSystemPrompt,
     .refuses = {{{kTokens, "--tokenize takes a text, not --tokens"}, {kLogits | kReceipt, kNothingToCompute}}},
     .run = run_tokenize},
    {.mode = Mode::detokenize,
     .flag = "--detokenize",
     .help = "Print the text of --tokens, and exit",
     .takes = kTokens,
     .refuses = {{{kText, kDetokenizeTakes}, {kLogits | kReceipt, kNothingToCompute}}},
     .run = run_detokenize},
    {.mode = Mode::count,
     .flag = "--count",
     .help = "Print the number of tokens of the prompt, of --message in the chat template, or of --render, and exit",
     .needs_prompt = true,
     .takes = kText | kMessage | kSystemPrompt,
     .refuses = {{{kTokens, "--count takes a text, not --tokens"}, {kLogits | kReceipt, kNothingToCompute}}},
     .run = run_count},
    {.mode = Mode::chat,
     .flag = "--chat",
     .help = "Each line of standard input is a message of a conversation",
     .computes = true,
     .takes = kSystemPrompt | kGenerated | kAnswered,
     .refuses = {{{kInputs, "--chat reads its messages from standard input"}}},
     .run = run_chat},
    {.mode = Mode::interactive,
     .flag = "--interactive",
     .help = "Each line of standard input continues the text",
     .computes = true,
     .takes = kMade | kGrammar | kSession,
     .refuses = {{{kInputs, "--interactive reads its prompts from standard input"}, {kPromptCache, kBeginsText}}},
     .run = run_interactive},
    {.mode = Mode::bench,
     .flag = "--bench",
     .help = "Measure tokens per second of prompt and generation, and exit",
     .computes = true,
     .takes = kText | kTokens | kLength | kGuesses,
     .refuses = {{{kLogits | kReceipt | kLogprobs, kBenchTakes}, {kSampling, kBenchIsGreedy}}},
     .run = run_bench},
    {.mode = Mode::perplexity,
     .flag = "--perplexity",
     .value = "FILE",
     .help = "Measure how well the model knows the text of a file",
     .computes = true,
     .takes = kReceipt | kWindows | kSaved,
     .refuses = {{{kInputs | kSystemPrompt, "--perplexity takes its text from a file"}}},
     .run = run_perplexity},
    {.mode = Mode::render,
     .flag = "--render",
     .value = "FILE",
     .help = "Print the text that the messages of a JSON file become by the chat template, and exit",
     .refuses = {{{kInputs | kSystemPrompt | kLogits | kReceipt | kSampling | kOtherMode, kRenderTakes}}},
     .run = run_render,
     .run_alone = [](const Options& options) { return render(options, nullptr); }},
    {.mode = Mode::embed,
     .flag = "--embed",
     .help = "Print the embedding of each text that follows, of the prompt, or of each line of a file or of standard "
             "input, as a line of JSON",
     .computes = true,
     .needs_prompt = true,
     .takes = kText | kTokens | kLogits | kPooling,
     .refuses = {{{kSystemPrompt | kReceipt | kOtherMode, kEmbedTakes}}},
     .run = run_embed},
    {.mode = Mode::rerank,
     .flag = "--rerank",
     .value = "QUERY",
     .help =
         "Score the lines of the file that follows, or of standard input, for a query, and print score, number of the "
         "line and text, the best one first",
     .computes = true,
     .needs_prompt = true,
     .takes = kText,
     .refuses = {{{kEvery & ~kText, kRerankTakes}}},
     .run = run_rerank},
    {.mode = Mode::accepts,
     .flag = "--accepts",
     .value = "FILE",
     .help = "Check the text of a file, and exit: 0 if it may be written, 1 if not",
     .takes = kGrammar,
     .refuses = {{{kEvery & ~kGrammar, kAcceptsTakes}}},
     .run_alone = run_accepts},
    {.mode = Mode::plan,
     .takes = kEvery & ~(kLogits | kReceipt | kSession),
     .refuses = {{{kLogits | kReceipt, kNothingToCompute}}},
     .run = run_plan},
}};

/// A group of options, in the order in which mistakes are reported.
struct GroupRow {
  Groups group;
  bool (*is_given)(const Options& options);
  const char* sentence;  // unless the mode has its own
};
constexpr std::array kGroups{
    GroupRow{kGrammar, [](const Options& o) { return o.has_grammar(); },
             "--grammar, --json-schema and --regex are for texts that are generated, and for --accepts"},
    GroupRow{kSession, [](const Options& o) { return !o.session_file.empty(); },
             "--session is for texts and conversations that are generated"},
    GroupRow{kPromptCache, [](const Options& o) { return !o.prompt_cache.empty(); },
             "--prompt-cache is for texts and conversations that are generated"},
    GroupRow{kMessage, [](const Options& o) { return o.as_message; }, "--message asks for an answer"},
    GroupRow{kText, [](const Options& o) { return (o.prompt && !o.as_message) || !o.prompt_file.empty(); },
             "--prompt and --prompt-file are for one text"},
    GroupRow{kTokens, [](const Options& o) { return !o.tokens.empty(); }, "--tokens are for one text"},
    GroupRow{
        kWindows,
        [](const Options& o) { return o.window != Options().window || o.windows != 0 || o.host.open.sequences != 1; },
        "--window, --windows and --sequences are for --perplexity"},
    GroupRow{kSaved, [](const Options& o) { return !(o.kl_file + o.save_logits_file).empty(); },
             "--kl and --save-logits are for --perplexity"},
    GroupRow{kSystemPrompt, [](const Options& o) { return o.system_prompt.has_value(); }, kSystemTakes},
    GroupRow{kLogits, [](const Options& o) { return !o.logits_file.empty(); }, "--logits needs one prompt"},
    GroupRow{kReceipt, [](const Options& o) { return !o.receipt_file.empty(); }, "--receipt needs one prompt"},
    GroupRow{kLogprobs, [](const Options& o) { return o.logprobs.has_value(); }, kLogprobsNeed},
    GroupRow{kAnswers, [](const Options& o) { return o.answers != 1; }, "--answers is for one prompt or --message"},
    GroupRow{kSampling, [](const Options& o) { return o.samples; },
             "the options of sampling are for texts that are generated"},
    GroupRow{kLength, [](const Options& o) { return o.limits_length; },
             "--max-tokens is for texts that are generated, and for --bench"},
    GroupRow{kEnds, [](const Options& o) { return !o.stops.empty() || o.ignore_eos; },
             "--stop and --ignore-eos are for texts that are generated"},
    GroupRow{kGuesses, [](const Options& o) { return o.speculate != kSpeculation[0]; },
             "--speculate is for texts that are generated, and for --bench"},
    GroupRow{kThoughts, [](const Options& o) { return !o.shows_thoughts || o.limits_thoughts(); }, kThoughtsTake},
    GroupRow{kHeld, [](const Options& o) { return !o.tool_choice.empty(); },
             "--tool-choice is for answers that are generated"},
    GroupRow{kPooling, [](const Options& o) { return o.pooling || o.normalize; },
             "--pooling and --normalize are for --embed"},
};

/// Returns the mode's own sentence about a group, or null.
const char* refusal_of(const ModeRow& row, Groups group) {
  const auto own = std::ranges::find_if(row.refuses, [&](const Refusal& r) { return (r.groups & group) != 0; });
  return own == row.refuses.end() ? nullptr : own->sentence;
}

/// Returns the flags of the modes that exclude each other and have no sentence of their own for it.
std::string exclusive_flags() {
  std::string out, last;
  for (const ModeRow& row : kRows) {
    if (*row.flag == '\0' || refusal_of(row, kOtherMode) != nullptr) continue;
    if (!last.empty()) out += (out.empty() ? "" : ", ") + last;
    last = row.flag;
  }
  return out + " and " + last;
}

}  // namespace

std::span<const ModeRow> modes() { return kRows; }

const ModeRow& row_of(Mode mode) { return kRows[static_cast<std::size_t>(mode)]; }

std::optional<std::string> mode_mistake(std::span<const Mode> selected) {
  if (selected.size() < 2) return std::nullopt;
  for (const Mode mode : selected) {
    if (const char* const own = refusal_of(row_of(mode), kOtherMode)) return own;
  }
  return exclusive_flags() + " exclude each other";
}

std::optional<std::string> group_mistake(const Options& o) {
  const ModeRow& mode = row_of(o.mode);
  for (const GroupRow& row : kGroups) {
    if ((mode.takes & row.group) != 0 || !row.is_given(o)) continue;
    const char* const own = refusal_of(mode, row.group);
    return own != nullptr ? own : row.sentence;
  }
  return std::nullopt;
}

}  // namespace qsf::run
