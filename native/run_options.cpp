#include "native/run_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "native/run_complete.h"
#include "native/run_kernels.h"
#include "native/run_scores.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr double kMiB = 1 << 20;

constexpr std::array<std::string_view, 3> kColors{"auto", "always", "never"};
constexpr std::array<std::string_view, 2> kYesNo{"no", "yes"};

int refuse(std::string_view sentence) {
  tell(make_error(ErrorCode::bad_argument, "{}", sentence));
  return 2;
}

/// Refuses what is no whole number of this type; conversion alone would take -1 and 2^64 for the largest.
template <class T>
CLI::Validator natural() {
  return CLI::Validator(
      [](std::string& text) {
        T value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size()) return std::string();
        return "'" + text + "' is not a whole number from 0 to " + std::to_string(std::numeric_limits<T>::max());
      },
      "");
}

/// The arguments that no option takes, in the order in which they were given.
std::string unexpected(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> left = app.remaining(), in_order;
  for (int i = 1; i < argc; ++i) {
    const auto at = std::find(left.begin(), left.end(), argv[i]);
    if (at == left.end()) continue;
    in_order.push_back(*at);
    left.erase(at);
  }
  in_order.insert(in_order.end(), left.begin(), left.end());
  std::string words;
  for (const std::string& argument : in_order) words += " " + argument;
  return (in_order.size() == 1 ? "this argument was not expected:" : "these arguments were not expected:") + words;
}

template <class Names>
std::string joined(const Names& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::vector<std::string_view> source_names() {
  std::vector<std::string_view> names;
  for (const SourceKind* kind : source_kinds()) {
    if (!kind->url) names.push_back(kind->name);
  }
  return names;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "1,2,3"
bool read_ids(std::string_view text, std::vector<std::uint32_t>& out) {
  while (true) {
    std::uint32_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc()) return false;
    out.push_back(id);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.empty()) return true;
    if (text.front() != ',') return false;
    text.remove_prefix(1);
  }
}

/// What is said of embeddings.
std::optional<std::string> embedding_mistake(Options& o, const std::string& pooling, const std::string& normalize) {
  if (!pooling.empty()) {
    const auto* at = std::find(kPoolingNames.begin(), kPoolingNames.end(), pooling);
    if (at == kPoolingNames.end()) return "there is no pooling '" + pooling + "', only " + joined(kPoolingNames);
    o.pooling = static_cast<Pooling>(at - kPoolingNames.begin());
  }
  if (!normalize.empty()) {
    const auto* at = std::find(kYesNo.begin(), kYesNo.end(), normalize);
    if (at == kYesNo.end()) return "--normalize is yes or no, not '" + normalize + "'";
    o.normalize = at != kYesNo.begin();
  }
  if (!o.embed) {
    if (o.pooling || o.normalize) return "--pooling and --normalize are for --embed";
    return std::nullopt;
  }
  if (o.tokenize || o.detokenize || o.chat || o.interactive || o.bench || o.system_prompt || !o.receipt_file.empty() ||
      !o.perplexity_file.empty()) {
    return "--embed makes no text: it goes with --prompt, --prompt-file, --tokens and --logits only";
  }
  const int ways = (o.texts.empty() ? 0 : 1) + (o.prompt ? 1 : 0) + (o.prompt_file.empty() ? 0 : 1);
  if (ways + (o.tokens.empty() ? 0 : 1) > 1) return "--embed takes texts in one way only";
  return std::nullopt;
}

/// What CLI11 has no notion of; a sentence when something does not fit.
std::optional<std::string> mistake(Options& o, double budget_mib, const std::string& kv, const std::string& tokens) {
  if (o.model.empty()) return "MODEL is needed: a .qsf file, or its http(s) URL";
  if (!(budget_mib > 0) || budget_mib > 1e9) return "--ram-budget takes MiB, a number above 0";
  o.host.budget = static_cast<std::uint64_t>(std::llround(budget_mib * kMiB));
  if (o.isa.empty()) o.isa = isa_from_environment();
  if (!o.isa.empty() && !contains(instruction_sets(), o.isa)) {
    return "there is no instruction set '" + o.isa + "' here, only " + joined(instruction_sets());
  }
  if (!o.source.empty()) {
    if (!contains(source_names(), o.source)) {
      return "there is no source '" + o.source + "', only " + joined(source_names());
    }
    if (is_url(o.model)) return "--source is for files, and the model is a URL";
  }
  if (!kv.empty()) {
    const auto* at = std::find(kKvNames.begin(), kKvNames.end(), kv);
    if (at == kKvNames.end()) return "there is no KV type '" + kv + "', only " + joined(kKvNames);
    o.host.open.kv = static_cast<KvType>(at - kKvNames.begin());
  }
  if (!tokens.empty() && !read_ids(tokens, o.tokens)) return "--tokens takes ids such as 1,2,3, not '" + tokens + "'";
  if (const Status status = check(o.sampler); !status) return status.error().sentence;
  const bool text = o.prompt || !o.prompt_file.empty();
  if (o.interactive && (text || !o.tokens.empty())) return "--interactive reads its prompts from standard input";
  if (o.chat && (text || !o.tokens.empty())) return "--chat reads its messages from standard input";
  if (o.interactive && o.bench) return "--interactive and --bench exclude each other";
  if (o.prompt && !o.prompt_file.empty()) return "--prompt and --prompt-file exclude each other";
  if (text && !o.tokens.empty()) return "--prompt and --tokens exclude each other";
  const bool perplexity = !o.perplexity_file.empty();
  if (o.tokenize + o.detokenize + o.chat + o.interactive + o.bench + perplexity > 1) {
    return "--tokenize, --detokenize, --chat, --interactive, --bench and --perplexity exclude each other";
  }
  if (!perplexity && (o.window != Options().window || o.windows != 0 || o.host.open.sequences != 1)) {
    return "--window, --windows and --sequences are for --perplexity";
  }
  if (!perplexity && !(o.kl_file + o.save_logits_file).empty()) return "--kl and --save-logits are for --perplexity";
  if (perplexity && (text || o.system_prompt || !o.tokens.empty())) return "--perplexity takes its text from a file";
  if (perplexity && o.window < kLeastWindow) {
    return "--window takes at least " + std::to_string(kLeastWindow) + " tokens, of which one is counted";
  }
  if (perplexity && o.host.open.max_seq_len != 0 && o.window > o.host.open.max_seq_len) {
    return "--window is longer than --max-seq-len";
  }
  if (o.system_prompt && (o.interactive || o.bench || o.detokenize || !o.tokens.empty())) {
    return "--system-prompt is for --chat or one prompt of text";
  }
  if (o.tokenize && !o.tokens.empty()) return "--tokenize takes a text, not --tokens";
  if (o.detokenize && (text || o.tokens.empty())) return "--detokenize takes --tokens";
  if ((o.tokenize || o.detokenize) && !(o.logits_file + o.receipt_file).empty()) {
    return "--logits and --receipt need something to compute";
  }
  if (!o.logits_file.empty() && (o.chat || o.interactive || o.bench || perplexity)) return "--logits needs one prompt";
  if (!o.receipt_file.empty() && (o.chat || o.interactive)) return "--receipt needs one prompt";
  return std::nullopt;
}

/// What is read besides Options' own fields.
struct Words {
  double budget_mib = 0;
  std::string kv, tokens, prompt, system_prompt, color = std::string(kColors[0]), completion, pooling, normalize;
};

class Table {
 public:
  Table(CLI::App& app, Options& options, Words& words) : app_(app), o_(options), w_(words) {}

  void generation() {
    prompt = text("-p,--prompt", w_.prompt, "The text to continue; else it is read from standard input", "TEXT");
    text("-f,--prompt-file", o_.prompt_file, "A file with the text to continue", "FILE");
    system_prompt = text("--system-prompt", w_.system_prompt,
                         "What the model is told to be: the prompt becomes a message in its chat template", "TEXT");
    text("--tokens", w_.tokens, "Token ids instead of text; nothing is added to them", "1,2,3");
    max_tokens = number("-n,--max-tokens", o_.max_tokens, "Tokens to generate at most; 0: compute the prompt only");
    app_.add_option("--temperature", o_.sampler.temperature, "0: always the most likely token");
    app_.add_option("--top-p", o_.sampler.top_p,
                    "Sample from the likeliest tokens that make up this share; 1: from all");
    number("--top-k", o_.sampler.top_k, "Sample from this many of the likeliest tokens; 0: from all");
    app_.add_option("--repetition-penalty", o_.sampler.repetition_penalty,
                    "Above 1: tokens already there become rarer");
    number("-s,--seed", o_.sampler.seed, "The same seed gives the same text");
    app_.add_option("--stop", o_.stops, "Stop where the text has this; may be given again")
        ->type_name("TEXT")
        ->default_str("")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app_.add_flag("--ignore-eos", o_.ignore_eos, "Go on after the model's end token");
  }

  void memory() {
    app_.add_option("--ram-budget", w_.budget_mib, "Memory for everything, in MiB")->type_name("MIB");
    number("--max-seq-len", o_.host.open.max_seq_len, "Tokens of context; 0: what the model and budget allow");
    number("--chunk", o_.host.open.chunk, "Prompt tokens per pass over the weights; 0: the plan's choice");
    number("--sequences", o_.host.open.sequences, "Windows of --perplexity that share the passes");
    number("--ring", o_.host.open.ring_slots, "Slots that weights are streamed through; 0: the plan's choice");
    app_.add_flag("--stream-all", o_.host.open.stream_all, "Keep no weights that can be streamed");
    choice(
        text("--kv", w_.kv, "How keys and values are kept: " + joined(kKvNames) + "; else the plan's choice", "TYPE"),
        kKvNames);
    choice(text("--source", o_.source, "How a file is read: " + joined(source_names()), "KIND"), source_names());
    text("--isa", o_.isa, "Instruction set: " + joined(instruction_sets()) + "; else the best, or what QSF_ISA says",
         "NAME");
    text("--kernel-speeds", o_.kernel_file,
         "Where it is kept which instruction sets are fastest for a token and a prompt, measured once; else " +
             std::string(kUsualKernelFile) + "; " + std::string(kNoKernelFile) + ": the best one",
         "FILE");
    number("-t,--threads", o_.host.threads, "Computing threads; 0: one per physical core")
        ->check(CLI::Range(0u, kMaxThreads));
    app_.add_flag("--pin", o_.host.pin, "Keep each computing thread but the first on a core of its own");
  }

  void telling() {
    app_.add_flag("--chat", o_.chat, "Each line of standard input is a message of a conversation");
    app_.add_flag("--interactive", o_.interactive, "Each line of standard input continues the text");
    app_.add_flag("--bench", o_.bench, "Measure tokens per second of prompt and generation, and exit");
    text("--perplexity", o_.perplexity_file, "Measure how well the model knows the text of a file", "FILE");
    text("--save-logits", o_.save_logits_file, "Save the logits of what --perplexity counts", "FILE");
    text("--kl", o_.kl_file, "Compare with logits that another model saved of the same text", "FILE");
    number("--window", o_.window, "Tokens of a window of that text; its second half is counted");
    number("--windows", o_.windows, "Windows to measure with; 0: all");
    app_.add_flag("--tokenize", o_.tokenize, "Print the token ids of the prompt, and exit");
    app_.add_flag("--detokenize", o_.detokenize, "Print the text of --tokens, and exit");
    app_.add_flag("--embed", o_.embed,
                  "Print the embedding of each text that follows, of the prompt, or of each line of a file or of "
                  "standard input, as a line of JSON");
    choice(text("--pooling", w_.pooling, "Of embeddings: " + joined(kPoolingNames) + "; else the model's own", "KIND"),
           kPoolingNames);
    choice(text("--normalize", w_.normalize, "Embeddings of length 1: yes, no; else as the model says", "WHETHER"),
           kYesNo);
    app_.add_flag("--memory-map", o_.memory_map, "Show the plan as a table; without a prompt that is all");
    text("--logits", o_.logits_file,
         "Write the prompt's logits: float32 [tokens][vocabulary]; with --embed the embeddings: float32 [rows][width]",
         "FILE");
    text("--receipt", o_.receipt_file, "Write what ran as JSON", "FILE");
    app_.add_flag("--verbose", o_.verbose, "Tell on stderr what is planned, used and measured");
    choice(text("--color", w_.color, "Colours on stderr: " + joined(kColors), "WHEN"), kColors);
    choice(text("--completion", w_.completion, "Print a completion file for a shell: " + joined(kShells), "SHELL"),
           kShells);
  }

  const Choices& choices() const { return choices_; }

  CLI::Option *prompt = nullptr, *system_prompt = nullptr, *max_tokens = nullptr;

 private:
  CLI::Option* text(const char* name, std::string& to, const std::string& help, const char* type) {
    return app_.add_option(name, to, help)->type_name(type);
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

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& o) {
  CLI::App app("Runs a language model inside a fixed memory budget.", "qsf-run");
  Words words;
  words.budget_mib = static_cast<double>(o.host.budget) / kMiB;
  app.option_defaults()->always_capture_default();
  app.allow_windows_style_options(false);  // so that a path may begin with a slash everywhere
  app.set_version_flag("--version", "qsf-run " QSF_VERSION);
  app.add_option("-m,--model,MODEL", o.model, "A .qsf file, or its http(s) URL");
  // Texts stand behind the model where they are embedded, and nowhere else.
  if (std::find(argv, argv + argc, std::string_view("--embed")) != argv + argc) {
    app.add_option("TEXT", o.texts, "A text to embed")->default_str("");
  }
  Table table(app, o, words);
  table.generation();
  table.memory();
  table.telling();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::printf("%s\n", version.what());
    return 0;
  } catch (const CLI::ExtrasError&) {
    return refuse(unexpected(app, argc, argv));
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  const auto* color = std::find(kColors.begin(), kColors.end(), words.color);
  if (color == kColors.end()) return refuse("--color is one of " + joined(kColors) + ", not '" + words.color + "'");
  use_color(static_cast<Color>(color - kColors.begin()));
  if (!words.completion.empty()) {
    if (std::find(kShells.begin(), kShells.end(), words.completion) == kShells.end()) {
      return refuse("--completion is one of " + joined(kShells) + ", not '" + words.completion + "'");
    }
    std::fputs(completion(app, table.choices(), words.completion).c_str(), stdout);
    return 0;
  }
  if (table.prompt->count() > 0) o.prompt = words.prompt;
  if (table.system_prompt->count() > 0) o.system_prompt = words.system_prompt;
  if (o.chat && table.max_tokens->count() == 0) o.max_tokens = std::numeric_limits<std::uint32_t>::max();
  if (const std::optional<std::string> wrong = mistake(o, words.budget_mib, words.kv, words.tokens)) {
    return refuse(*wrong);
  }
  if (const std::optional<std::string> wrong = embedding_mistake(o, words.pooling, words.normalize)) {
    return refuse(*wrong);
  }
  const bool has_prompt = !o.texts.empty() || o.prompt || !o.prompt_file.empty() || !o.tokens.empty() || o.chat ||
                          o.interactive || o.bench || !o.perplexity_file.empty();
  if (!has_prompt && (o.tokenize || !o.memory_map)) {
    if (sys::is_terminal(sys::kInput))
      return refuse("nothing to do: give --prompt, --tokens, --chat, --interactive, --bench or --perplexity");
    o.prompt_from_input = true;
  }
  o.host.open.isa = o.isa;
  o.host.open.all_logits = (!o.logits_file.empty() && !o.embed) || !o.perplexity_file.empty();
  o.host.source.kind = o.source;
  o.host.expect = o.memory_map || o.verbose || o.bench;
  return std::nullopt;
}

}  // namespace qsf::run
