#include "native/run/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>

#include "native/cli/command_line.h"
#include "native/cli/exit_status.h"
#include "native/cli/names.h"
#include "native/host/draft.h"
#include "native/host/kv_policy.h"
#include "native/run/kernels.h"
#include "native/run/option_rules.h"
#include "native/run/sampling_options.h"
#include "native/sources/address.h"
#include "qsf/formats/format.h"
#include "qsf/run/guesses.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::string_view kUsualCache = "~/.cache/qsf/fronts", kNoCache = "none";
constexpr double kMiB = 1 << 20;
constexpr const char *kModelGroup = "Model", *kSamplingGroup = "Sampling", *kMemoryGroup = "Memory and machine";

/// Returns the largest number of a session's sequences.
constexpr std::uint32_t most_sequences() {
#define QSF_OPEN_OPTION(type, name, js, fallback, least, most, meaning) \
  if (std::string_view(#name) == "sequences") return most;
#include "qsf/base/boundary.def"
  return 1;
}

constexpr std::array<std::string_view, 3> kColors{"auto", "always", "never"};
constexpr std::array<std::string_view, 2> kReasoning{"show", "hide"};

/// Names that llama.cpp's programs have for options, in addition to the options' own names.
constexpr std::array kWords{Word{"-ctk", "--cache-type-k"}, Word{"-ctv", "--cache-type-v"},
                            Word{"-sys", "--system-prompt"}};
constexpr ManualSection kExamples{
    "Examples", " qsf-run model.qsf --prompt \"Once upon a time\" --ram-budget 64M\n qsf-run model.qsf --chat\n"};

int refuse(std::string_view sentence) {
  tell(ErrorCode::bad_argument, sentence);
  return kMistaken;
}

/// Returns the folder of fronts: a given one, or the usual one. Empty for none.
std::string cache_of(const std::string& given) {
  if (!given.empty()) return given == kNoCache ? "" : given;
  const std::string folder = sys::cache_folder();
  return folder.empty() ? "" : folder + "/qsf/fronts";
}

/// Option values that are not fields of Options.
struct Words {
  std::string budget, cache_limit = "1G", kv, keys, values, tokens, prompt, message, system_prompt,
                      color = std::string(kColors[0]), pooling, normalize, reasoning = std::string(kReasoning[0]),
                      speculate = std::string(kSpeculation[0]), kv_policy = "all", least_memory;
  SamplingOptions sampling;
  std::array<std::string, kModes> mode_values;
  std::string documents;  // for --rerank
};

class Table {
 public:
  Table(CLI::App& app, Options& options, Words& words) : app_(app), o_(options), w_(words) {}

  /// The options of models that are no .qsf files.
  void conversion() {
    choice(text("--quant-type", o_.quant_type,
                "The format of all matrices; else the types of a .qsf or GGUF file, or 8bit for float weights", "TYPE"),
           format_names());
    text("--cache", o_.cache,
         "A folder of such models' tokenizers and settings that were made; else " + std::string(kUsualCache) + "; " +
             std::string(kNoCache) + ": none",
         "DIR");
  }

  void generation() {
    begin("Generation");
    prompt = text("-p,--prompt", w_.prompt, "The text to continue; else it is read from standard input", "TEXT");
    text("-f,--prompt-file", o_.prompt_file, "A file with the text to continue", "FILE");
    message = text("--message", w_.message, "A message to answer, in the model's chat template", "TEXT");
    repeated("--file", o_.files, "A text file to put before the message; may be given again", "FILE");
    system_prompt = text("--system-prompt", w_.system_prompt,
                         "The system prompt: the prompt becomes a message in the chat template", "TEXT");
    text("--session", o_.session_file,
         "A file to continue the text or conversation from, if it is there, and to save it to", "FILE");
    text("--prompt-cache", o_.prompt_cache, "A folder that keeps computed prompts, of which others need only the rest",
         "DIR");
    text("--prompt-cache-limit", w_.cache_limit, "What they may take; the one used longest ago is removed first",
         "SIZE")
        ->check(size())
        ->needs("--prompt-cache");
    text("--chat-template", o_.template_file, "A chat template to use instead of the model's own", "FILE");
    repeated("--template-arg", o_.template_arguments,
             "A variable of the chat template, such as enable_thinking=false; may be given again", "NAME=VALUE");
    text("--tools", o_.tools_file, "Tools that answers may call: a JSON list, as OpenAI's interface has it", "FILE");
    text("--tool-choice", o_.tool_choice,
         "Hold calls to the schemas of their tools: auto, required for an answer that begins with a call, or the name "
         "of the one tool to call",
         "CHOICE");
    choice(text("--reasoning", w_.reasoning, "Thoughts of the model on stderr: " + joined(kReasoning), "WHETHER"),
           kReasoning);
    app_.add_option("--reasoning-budget", o_.reasoning_budget,
                    "Tokens after which a thought is ended; 0: at once; -1: never")
        ->transform(natural_or(+[] { return kUnlimitedThoughts; }))
        ->default_str("-1");
    text("--tokens", w_.tokens, "Token ids instead of text, such as 1,2,3; nothing is added to them", "IDS");
    max_tokens =
        app_.add_option("-n,--max-tokens,--n-predict", o_.max_tokens,
                        "Tokens to generate at most; 0: compute the prompt only; -1: as many as there is room for")
            ->transform(natural_or(+[] { return std::numeric_limits<std::uint32_t>::max(); }));
    number("--answers", o_.answers, "Texts to make of the one prompt, with the seeds that follow --seed")
        ->check(CLI::Range(1u, most_sequences()));
    repeated("-r,--stop,--reverse-prompt", o_.stops, "Stop at this text; may be given again", "TEXT");
    app_.add_flag("--ignore-eos", o_.ignore_eos, "Go on after the model's end token");
    begin(kSamplingGroup);
    w_.sampling.add(app_, o_);
  }

  void memory() {
    begin(kMemoryGroup);
    text("--ram-budget", w_.budget, "Memory for everything: MiB, or with K, M or G", "SIZE")->check(size());
    number("-c,--max-seq-len,--ctx-size", o_.host.open.max_seq_len,
           "Tokens of context; 0: as many as fit after all weights, or a few while these are streamed");
    choice(text("--speculate", w_.speculate,
                "Guess tokens ahead, which changes no text: " + joined(kSpeculation) +
                    ", or a model; ngram: as after earlier occurrences of the last tokens; layers or layers:N: by the "
                    "model's first layers; head: by its own layer for further tokens; lowbit or lowbit:TYPE: by the "
                    "model in fewer bits; a model with the same vocabulary: as it would go on",
                "KIND"),
           kSpeculation);
    guesses = number("--guesses", o_.host.open.guesses, "With --speculate: most tokens that are guessed for a pass");
    guesses->check(CLI::Range(1u, kMostGuesses));
    number("--chunk", o_.host.open.chunk, "Prompt tokens per pass over the weights; 0: the plan's choice");
    number("--text-bytes", o_.host.open.text_bytes,
           "Bytes for chat templates, conversations and grammars; 0: as many as they usually need");
    number("--ring", o_.host.open.ring_slots, "Slots that weights are streamed through; 0: the plan's choice");
    app_.add_flag("--stream-all", o_.host.open.stream_all, "Keep no weights that can be streamed");
    choice(text("--kv", w_.kv,
                "The type of keys and values: " + joined(kKvNames) + "; else f16, or f32 for f32 weights", "TYPE"),
           kKvNames);
    text("--cache-type-k", w_.keys, "The same (-ctk), also as llama.cpp calls it: q8_0 for 8bit, q4_0 for 4bit",
         "TYPE");
    text("--cache-type-v", w_.values, "The same (-ctv)", "TYPE");
    text("--kv-policy", w_.kv_policy, "Positions that stay: all, window:N, sinks:A+N, h2o:N, snapkv:N", "POLICY");
    text("--memory-monitor", w_.least_memory,
         "With --kv-policy: keep fewer positions when less memory is available than this: MiB, or with K, M or G",
         "SIZE")
        ->check(size());
    choice(text("--source", o_.source, "How a file is read: " + joined(source_names()), "KIND"), source_names());
    app_.add_flag("--leave-https", o_.host.source.leave_https, "Follow a server that redirects from https to http");
    text("--isa", o_.isa,
         "Instruction set: " + joined(instruction_sets()) + "; else the best, or the one that QSF_ISA names", "NAME");
    text("--kernel-speeds", o_.kernel_file,
         "A file for the measured instruction sets that are fastest for a token and a prompt; else " +
             std::string(kUsualKernelFile) + "; " + std::string(kNoKernelFile) + ": the best one",
         "FILE");
    number("-t,--threads", o_.host.threads, "Computing threads; 0: one per physical core")
        ->check(CLI::Range(0u, kMaxThreads));
    app_.add_flag("--pin", o_.host.pin, "Keep each computing thread but the first on a core of its own");
  }

  void conversations() {
    begin("Instead of one prompt");
    for (const Mode each :
         {Mode::chat, Mode::interactive, Mode::bench, Mode::tokenize, Mode::detokenize, Mode::count, Mode::render}) {
      mode(each);
    }
    begin("Allowed texts");
    text("--json-schema", o_.schema_file, "A file with a JSON schema", "FILE");
    text("--grammar", o_.grammar_file, "A file with a grammar in GBNF", "FILE");
    text("--regex", o_.regex, "A regular expression of the whole text", "PATTERN");
    mode(Mode::accepts);
    begin("Measuring a model");
    mode(Mode::perplexity);
    text("--save-logits", o_.save_logits_file, "Save the logits of the tokens that --perplexity counts", "FILE");
    text("--kl", o_.kl_file, "Compare with logits that another model saved of the same text", "FILE");
    number("--window", o_.window, "Tokens of a window of that text; its second half is counted");
    number("--windows", o_.windows, "Windows to measure with; 0: all");
    number("--sequences", o_.host.open.sequences, "Windows that share the passes");
    begin("Rerankers");
    mode(Mode::rerank);
    begin("Embeddings");
    mode(Mode::embed);
    choice(text("--pooling", w_.pooling, "Of embeddings: " + joined(kPoolingNames) + "; else the model's own", "KIND"),
           kPoolingNames);
    choice(text("--normalize", w_.normalize, "Embeddings of length 1: yes, no; else as in the model", "WHETHER"),
           kYesNo);
  }

  void telling() {
    begin("Reports");
    memory_map = app_.add_flag("--memory-map", o_.memory_map, "Show the plan as a table; without a prompt that is all");
    text("--logits", o_.logits_file,
         "Write the prompt's logits: float32 [tokens][vocabulary]; with --embed the embeddings: float32 [rows][width]",
         "FILE");
    text("--receipt", o_.receipt_file, "Write a record of the run as JSON", "FILE");
    app_.add_option("--logprobs", o_.logprobs,
                    "Log-probabilities in the receipt: of each token, and of as many of the likeliest ones")
        ->type_name("N")
        ->check(CLI::Range(0u, kMostTopLogprobs));
    app_.add_flag("-v,--verbose", o_.verbose, "Print the plan, the memory used and the measurements on stderr");
    choice(text("--color", w_.color, "Colours on stderr: " + joined(kColors), "WHEN"), kColors);
  }

  const Choices& choices() const { return choices_; }
  /// Whether an option of sampling was given.
  bool samples() const {
    const auto given = [](const CLI::Option* option) {
      return option->get_group() == kSamplingGroup && option->count() > 0;
    };
    return !app_.get_options(given).empty();
  }

  /// Returns the name of an option that was given and means nothing without a model; empty for none.
  std::string of_model() const {
    const auto given = [this](const CLI::Option* option) {
      const std::string& group = option->get_group();
      return option->count() > 0 && (group == kModelGroup || group == kMemoryGroup || option == memory_map);
    };
    const std::vector<const CLI::Option*> all = std::as_const(app_).get_options(given);
    return all.empty() ? std::string() : all.front()->get_name();
  }

  CLI::Option *prompt = nullptr, *message = nullptr, *system_prompt = nullptr, *max_tokens = nullptr,
              *guesses = nullptr, *memory_map = nullptr;
  std::array<CLI::Option*, kModes> modes{};  // null for a mode without a flag

 private:
  /// Puts options that are added from now on into a group.
  void begin(const char* group) { app_.option_defaults()->group(group); }
  /// Adds the flag of a mode.
  void mode(Mode each) {
    const ModeRow& row = row_of(each);
    const auto at = static_cast<std::size_t>(each);
    modes[at] = *row.value == '\0' ? app_.add_flag(row.flag, row.help)
                                   : text(row.flag, w_.mode_values[at], row.help, row.value);
  }
  CLI::Option* text(const char* name, std::string& to, const std::string& help, const char* type) {
    return app_.add_option(name, to, help)->type_name(type);
  }
  void repeated(const char* name, std::vector<std::string>& to, const char* help, const char* type) {
    CLI::Option* const option = app_.add_option(name, to, help)->type_name(type)->default_str("");
    option->take_all()->expected(1)->allow_extra_args(false);
  }
  template <class T>
  CLI::Option* number(const char* name, T& to, const char* help) {
    return app_.add_option(name, to, help)->check(natural<T>());
  }
  template <class Names>
  void choice(const CLI::Option* option, const Names& names) {
    choices_[option].assign(names.begin(), names.end());
  }

  CLI::App& app_;
  Options& o_;
  Words& w_;
  Choices choices_;
};

/// Selects the mode. Returns a sentence if flags of several were given.
std::optional<std::string> read_mode(const Table& table, const Words& w, Options& o) {
  std::vector<Mode> selected;
  for (std::size_t i = 0; i < kModes; ++i) {
    if (table.modes[i] != nullptr && table.modes[i]->count() > 0) selected.push_back(static_cast<Mode>(i));
  }
  o.counts = std::ranges::find(selected, Mode::count) != selected.end();
  if (o.counts && std::ranges::find(selected, Mode::render) != selected.end()) std::erase(selected, Mode::count);
  if (const std::optional<std::string> wrong = mode_mistake(selected)) return wrong;
  if (selected.empty()) return std::nullopt;
  o.mode = selected.front();
  o.mode_value = w.mode_values[static_cast<std::size_t>(o.mode)];
  return std::nullopt;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& o) {
  CLI::App app("Runs a language model inside a fixed memory budget.", "qsf-run");
  Words words;
  words.budget = std::to_string(o.host.budget >> 20);
  o.host.open.guesses = kUsualGuesses;
  app.option_defaults()->always_capture_default();
  app.allow_windows_style_options(false);  // so that a path may begin with a slash everywhere
  app.option_defaults()->group(kModelGroup);
  app.add_option(
         "-m,--model,MODEL", o.model,
         "A .qsf or GGUF file, a Hugging Face directory, http(s) URLs of them, or hf:OWNER/NAME[/FILE][@REVISION]")
      ->type_name("FILE");
  app.add_option("--sha256", o.sha256, "What the model's bytes must have as SHA-256; they are read once more for it")
      ->type_name("HEX");
  // Texts follow the model only with --embed.
  if (std::find(argv, argv + argc, std::string_view(row_of(Mode::embed).flag)) != argv + argc) {
    app.add_option("TEXT", o.texts, "A text to embed")->default_str("");
  }
  if (std::find(argv, argv + argc, std::string_view(row_of(Mode::rerank).flag)) != argv + argc) {
    app.add_option("FILE", words.documents, "Documents to score, one a line")->type_name("FILE")->default_str("");
  }
  Table table(app, o, words);
  table.conversion();
  table.generation();
  table.conversations();
  table.memory();
  table.telling();
  const std::string status = exit_status("an error while opening, reading, generating or writing");
  const std::array manual{
      ManualSection{"Environment", "QSF_ISA is the instruction set, as of --isa. NO_COLOR, if set, means no colours."},
      ManualSection{"Exit status", status}, kExamples,
      ManualSection{"See also", "qsf-convert(1), qsf-parity(1), and the installed documentation."}};
  const Parsed parsed = qsf::parse(app, argc, argv, {kWords, table.choices(), manual});
  if (parsed.what == Parsed::What::told) return 0;
  if (parsed.what == Parsed::What::mistake) return refuse(parsed.sentence);
  if (const std::optional<std::string> wrong = read_mode(table, words, o)) return refuse(*wrong);
  o.samples = table.samples();
  o.limits_length = table.max_tokens->count() > 0;
  o.host.budget = read_size(words.budget, kMiB).value_or(0);
  o.prompt_cache_bytes = read_size(words.cache_limit, kMiB).value_or(0);
  const auto* color = std::find(kColors.begin(), kColors.end(), words.color);
  if (color == kColors.end()) return refuse("--color is one of " + joined(kColors) + ", not '" + words.color + "'");
  use_color(static_cast<Color>(color - kColors.begin()));
  if (std::ranges::find(kReasoning, words.reasoning) == kReasoning.end()) {
    return refuse("--reasoning is one of " + joined(kReasoning) + ", not '" + words.reasoning + "'");
  }
  o.shows_thoughts = words.reasoning == kReasoning[0];
  if (table.guesses->count() > 0 && words.speculate == kSpeculation[0]) return refuse("--guesses needs --speculate");
  o.speculate = words.speculate;
  if (const Status set = set_speculation(o.speculate, o.host.open.guesses, o.host); !set) {
    return refuse("--speculate: " + std::string(set.error().sentence));
  }
  if (table.prompt->count() > 0) o.prompt = words.prompt;
  o.as_message = table.message->count() > 0;
  if (o.as_message && o.prompt) return refuse("--message and --prompt exclude each other");
  if (o.as_message) o.prompt = words.message;
  if (table.system_prompt->count() > 0) o.system_prompt = words.system_prompt;
  if (o.mode == Mode::chat && !o.limits_length) o.max_tokens = std::numeric_limits<std::uint32_t>::max();
  const std::array cache{words.kv, words.keys, words.values};
  if (const std::optional<std::string> wrong = cache_mistake(o, cache)) return refuse(*wrong);
  if (const Status set = set_kv_policy(words.kv_policy, o.host.open); !set) return refuse(set.error().sentence);
  if (o.host.open.kv_chosen != 0 && !(o.session_file + o.prompt_cache).empty()) {
    return refuse("--session and --prompt-cache save all positions or the first and last ones, not chosen ones");
  }
  o.host.monitor = {read_size(words.least_memory, kMiB).value_or(0), {}, [](const std::string& s) { note(s); }};
  if (o.host.monitor.least != 0 && o.host.open.kv_window == 0) {
    return refuse("--memory-monitor evicts positions by a policy: --kv-policy is needed");
  }
  if (o.host.monitor.least != 0 && !o.prompt_cache.empty()) {
    return refuse("--prompt-cache keeps prompts of one policy, which --memory-monitor changes");
  }
  if (const std::optional<std::string> wrong = embedding_mistake(o, words.pooling, words.normalize)) {
    return refuse(*wrong);
  }
  if (const std::optional<std::string> wrong = reranking_mistake(o)) return refuse(*wrong);
  if (!words.documents.empty() && !o.prompt_file.empty()) return refuse("--rerank takes documents in one way only");
  if (!words.documents.empty()) o.prompt_file = words.documents;
  o.of_model = table.of_model();
  if (const std::optional<std::string> wrong = mistake(o, words.tokens)) return refuse(*wrong);
  if (const std::optional<std::string> wrong = words.sampling.read(o)) return refuse(*wrong);
  const bool has_prompt = !o.texts.empty() || o.prompt || !o.prompt_file.empty() || !o.tokens.empty();
  if (row_of(o.mode).needs_prompt && !has_prompt) {
    if (o.memory_map && o.computes()) {
      o.mode = Mode::plan;
      if (const std::optional<std::string> wrong = group_mistake(o)) return refuse(*wrong);
    } else if (sys::is_terminal(sys::kInput)) {
      return refuse("nothing to do: give --prompt, --tokens, --chat, --interactive, --bench or --perplexity");
    } else {
      o.prompt_from_input = true;
    }
  }
  o.host.open.isa = o.isa;
  o.host.open.all_logits = (!o.logits_file.empty() && o.mode != Mode::embed) || o.mode == Mode::perplexity;
  o.host.open.logprobs = o.logprobs.has_value();
  if (o.answers > 1) o.host.open.sequences = o.answers;
  o.host.source.kind = o.source;
  o.host.source.quant_type = o.quant_type;
  o.cache = cache_of(o.cache);
  o.host.source.cache = o.cache;
  o.host.expect = o.memory_map || o.verbose || o.mode == Mode::bench;
  return std::nullopt;
}

}  // namespace qsf::run
