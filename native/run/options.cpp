#include "native/run/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "native/cli/command_line.h"
#include "native/cli/scores.h"
#include "native/run/digest.h"
#include "native/run/kernels.h"
#include "native/run/sampling_options.h"
#include "native/sources/address.h"
#include "qsf/base/utf8.h"
#include "qsf/formats/format.h"
#include "qsf/run/guesses.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::string_view kUsualCache = "~/.cache/qsf/fronts", kNoCache = "none";
constexpr double kMiB = 1 << 20;

constexpr std::array<std::string_view, 3> kColors{"auto", "always", "never"};
constexpr std::array<std::string_view, 2> kYesNo{"no", "yes"};
constexpr std::array<std::string_view, 2> kReasoning{"show", "hide"};
constexpr std::array<std::string_view, 2> kSpeculation{"none", "ngram"};
constexpr std::uint32_t kUsualGuesses = 7;

/// Names that llama.cpp's programs have for options, in addition to the options' own names.
constexpr std::array kWords{Word{"-ctk", "--cache-type-k"}, Word{"-ctv", "--cache-type-v"},
                            Word{"-sys", "--system-prompt"}};
/// Names that they have for types of keys and values.
constexpr std::array<std::pair<std::string_view, KvType>, 3> kCacheTypes{
    {{"q8_0", KvType::q8}, {"q4_0", KvType::q4}, {"q4_1", KvType::q4}}};

constexpr std::array kManual{
    ManualSection{"Environment", "QSF_ISA is the instruction set, as of --isa. NO_COLOR, if set, means no colours."},
    ManualSection{
        "Exit status",
        "0: done.\n\n1: an error while opening, reading, generating or writing.\n\n2: a mistake on the command "
        "line.\n\n141: nobody reads standard output any more.\n\n128 and a signal's number: stopped by it."},
    ManualSection{"Examples",
                  " qsf-run model.qsf --prompt \"Once upon a time\" --ram-budget 64M\n qsf-run model.qsf --chat\n"},
    ManualSection{"See also", "qsf-convert(1), qsf-parity(1), and the installed documentation."}};

int refuse(std::string_view sentence) {
  tell(make_error(ErrorCode::bad_argument, "{}", sentence));
  return 2;
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

std::vector<std::string_view> format_names() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

/// Returns the folder of fronts: a given one, or the usual one. Empty for none.
std::string cache_of(const std::string& given) {
  if (!given.empty()) return given == kNoCache ? "" : given;
  const std::string folder = sys::cache_folder();
  return folder.empty() ? "" : folder + "/qsf/fronts";
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Reads ids such as "1,2,3".
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

/// Reads the options of embeddings. Returns a sentence about a mistake, as the functions below do.
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

/// Sets the type of keys and values if options name one.
std::optional<std::string> cache_mistake(Options& o, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const auto own = std::ranges::find(kKvNames, name);
    const auto other =
        std::ranges::find(kCacheTypes, std::string_view(name), &decltype(kCacheTypes)::value_type::first);
    if (own == kKvNames.end() && other == kCacheTypes.end()) {
      return "there is no KV type '" + name + "', only " + joined(kKvNames);
    }
    const KvType type = other != kCacheTypes.end() ? other->second : static_cast<KvType>(own - kKvNames.begin());
    if (o.host.open.kv && *o.host.open.kv != type)
      return "keys and values have the same type: give both options the same one";
    o.host.open.kv = type;
  }
  return std::nullopt;
}

/// Reserves the usual bytes of a grammar over a large vocabulary, or of a template that the file does not have.
void reserve_texts(Options& o) {
  constexpr std::uint32_t kOfTemplate = 4u << 20, kOfGrammar = 24u << 20;  // bytes
  if (o.host.open.text_bytes != 0) return;
  if (!o.template_file.empty()) o.host.open.text_bytes = kOfTemplate;
  if (o.has_grammar() || !o.tool_choice.empty()) o.host.open.text_bytes = kOfGrammar;
}

std::optional<std::string> grammar_mistake(const Options& o) {
  const int grammars = (o.grammar_file.empty() ? 0 : 1) + (o.schema_file.empty() ? 0 : 1) + (o.regex.empty() ? 0 : 1);
  if (grammars > 1) return "--grammar, --json-schema and --regex exclude each other";
  if (grammars == 0 && !o.accepts_file.empty()) return "--accepts needs --grammar, --json-schema or --regex";
  if (o.has_grammar() &&
      (o.tokenize || o.detokenize || o.bench || o.embed || !(o.perplexity_file + o.render_file).empty())) {
    return "--grammar, --json-schema and --regex are for texts that are generated, and for --accepts";
  }
  return std::nullopt;
}

std::optional<std::string> saving_mistake(const Options& o) {
  if (o.tokenize || o.detokenize || o.bench || o.embed || !(o.perplexity_file + o.render_file).empty()) {
    if (!o.session_file.empty()) return "--session is for texts and conversations that are generated";
    if (!o.prompt_cache.empty()) return "--prompt-cache is for texts and conversations that are generated";
  }
  if (!o.prompt_cache.empty() && (o.continues() || o.interactive)) {
    return "--prompt-cache is for prompts that begin a text, and these continue one";
  }
  return std::nullopt;
}

/// Makes the checks that CLI11 cannot make.
std::optional<std::string> mistake(Options& o, const std::string& tokens) {
  if (const std::optional<std::string> wrong = grammar_mistake(o)) return wrong;
  if (const std::optional<std::string> wrong = saving_mistake(o)) return wrong;
  reserve_texts(o);
  const bool renders = !o.render_file.empty();
  if ((!o.converses() || renders) && !(o.tools_file.empty() && o.shows_thoughts && !o.limits_thoughts())) {
    return "--tools, --reasoning and --reasoning-budget are for --chat, --message and --system-prompt";
  }
  if (!o.tool_choice.empty() && o.tools_file.empty()) return "--tool-choice needs --tools";
  if (!o.tool_choice.empty() && o.has_grammar()) {
    return "--tool-choice holds calls, and --grammar, --json-schema and --regex hold texts: they exclude each other";
  }
  if (!o.converses() && !(o.template_file.empty() && o.template_arguments.empty())) {
    return "--chat-template and --template-arg are for --chat, --message, --system-prompt and --render";
  }
  for (const std::string& argument : o.template_arguments) {
    const std::size_t at = argument.find('=');
    if (at == 0 || at == std::string::npos) return "--template-arg takes NAME=VALUE, not '" + argument + "'";
    if (!utf8::is_valid(argument)) return "--template-arg takes UTF-8, not '" + argument + "'";
  }
  if (o.model.empty() && (!renders || o.template_file.empty())) {
    return renders ? "--render needs MODEL or --chat-template"
                   : "MODEL is needed: a .qsf file or its http(s) URL, a GGUF file, or a Hugging Face directory";
  }
  if (!o.sha256.empty() && !is_digest(o.sha256)) return "--sha256 takes 64 hexadecimal digits, not '" + o.sha256 + "'";
  if (o.isa.empty()) o.isa = isa_from_environment();
  if (!o.isa.empty() && !contains(instruction_sets(), o.isa)) {
    return "there is no instruction set '" + o.isa + "' here, only " + joined(instruction_sets());
  }
  if (!o.quant_type.empty() && !contains(format_names(), o.quant_type)) {
    return "there is no type '" + o.quant_type + "', only " + joined(format_names());
  }
  if (!o.source.empty()) {
    if (!contains(source_names(), o.source)) {
      return "there is no source '" + o.source + "', only " + joined(source_names());
    }
    if (is_address(o.model)) return "--source is for files, and the model is on a server";
  }
  if (!tokens.empty() && !read_ids(tokens, o.tokens)) return "--tokens takes ids such as 1,2,3, not '" + tokens + "'";
  const bool text = o.prompt || !o.prompt_file.empty();
  if (o.interactive && (text || !o.tokens.empty())) return "--interactive reads its prompts from standard input";
  if (o.chat && (text || !o.tokens.empty())) return "--chat reads its messages from standard input";
  if (o.interactive && o.bench) return "--interactive and --bench exclude each other";
  if (o.as_message && (o.interactive || o.bench || o.detokenize || o.embed)) return "--message asks for an answer";
  if (o.prompt && !o.prompt_file.empty()) return "--prompt and --prompt-file exclude each other";
  if (text && !o.tokens.empty()) return "--prompt and --tokens exclude each other";
  const bool perplexity = !o.perplexity_file.empty();
  if (renders && (text || !o.tokens.empty() || o.system_prompt || o.tokenize || o.detokenize || o.chat ||
                  o.interactive || o.bench || o.embed || perplexity || !(o.logits_file + o.receipt_file).empty())) {
    return "--render shows the text of its messages only: it goes with a model and --chat-template";
  }
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
  if (o.logprobs && (o.receipt_file.empty() || perplexity)) return "--logprobs are written by --receipt for one prompt";
  return std::nullopt;
}

/// Option values that are not fields of Options.
struct Words {
  std::string budget, cache_limit = "1G", kv, keys, values, tokens, prompt, message, system_prompt,
                      color = std::string(kColors[0]), pooling, normalize, reasoning = std::string(kReasoning[0]),
                      speculate = std::string(kSpeculation[0]);
  SamplingOptions sampling;
};

class Table {
 public:
  Table(CLI::App& app, Options& options, Words& words) : app_(app), o_(options), w_(words) {}

  /// The options of models that are no .qsf files.
  void conversion() {
    choice(text("--quant-type", o_.quant_type,
                "The format of all matrices of a model that is no .qsf file; else its own, or 8bit for float weights",
                "TYPE"),
           format_names());
    text("--cache", o_.cache,
         "A folder of such models' tokenizers and settings that were made; else " + std::string(kUsualCache) + "; " +
             std::string(kNoCache) + ": none",
         "DIR");
  }

  void generation() {
    begin("Generation");
    prompt = text("-p,--prompt", w_.prompt, "The text to continue; else it is read from standard input", "TEXT");
    text("-f,--prompt-file,--file", o_.prompt_file, "A file with the text to continue", "FILE");
    message = text("--message", w_.message, "A message to answer, in the model's chat template", "TEXT");
    system_prompt = text("--system-prompt", w_.system_prompt,
                         "The system prompt: the prompt becomes a message in the chat template", "TEXT");
    text("--session", o_.session_file,
         "A file to continue the text or conversation from, if it is there, and to save it to", "FILE");
    text("--prompt-cache", o_.prompt_cache, "A folder that keeps computed prompts, of which others need only the rest",
         "FOLDER");
    text("--prompt-cache-limit", w_.cache_limit, "What they may take; the one used longest ago is removed first",
         "SIZE")
        ->check(size());
    text("--chat-template", o_.template_file, "A chat template to use instead of the model's own", "FILE");
    app_.add_option("--template-arg", o_.template_arguments,
                    "A variable of the chat template, such as enable_thinking=false; may be given again")
        ->type_name("NAME=VALUE")
        ->default_str("")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
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
    text("--tokens", w_.tokens, "Token ids instead of text; nothing is added to them", "1,2,3");
    max_tokens =
        app_.add_option("-n,--max-tokens,--n-predict", o_.max_tokens,
                        "Tokens to generate at most; 0: compute the prompt only; -1: as many as there is room for")
            ->transform(natural_or(+[] { return std::numeric_limits<std::uint32_t>::max(); }));
    app_.add_option("-r,--stop,--reverse-prompt", o_.stops, "Stop at this text; may be given again")
        ->type_name("TEXT")
        ->default_str("")
        ->take_all()
        ->expected(1)
        ->allow_extra_args(false);
    app_.add_flag("--ignore-eos", o_.ignore_eos, "Go on after the model's end token");
    begin("Sampling");
    w_.sampling.add(app_, o_);
  }

  void memory() {
    begin("Memory and machine");
    text("--ram-budget", w_.budget, "Memory for everything: MiB, or with K, M or G", "SIZE")->check(size());
    number("-c,--max-seq-len,--ctx-size", o_.host.open.max_seq_len,
           "Tokens of context; 0: as many as fit after all weights, or a few while these are streamed");
    choice(text("--speculate", w_.speculate,
                "Guess tokens ahead, which changes no text: " + joined(kSpeculation) +
                    "; ngram: as after earlier occurrences of the last tokens",
                "KIND"),
           kSpeculation);
    number("--guesses", o_.host.open.guesses, "With --speculate: most tokens that are guessed for a pass")
        ->check(CLI::Range(1u, kMostGuesses));
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
    app_.add_flag("--chat", o_.chat, "Each line of standard input is a message of a conversation");
    app_.add_flag("--interactive", o_.interactive, "Each line of standard input continues the text");
    app_.add_flag("--bench", o_.bench, "Measure tokens per second of prompt and generation, and exit");
    app_.add_flag("--tokenize", o_.tokenize, "Print the token ids of the prompt, and exit");
    app_.add_flag("--detokenize", o_.detokenize, "Print the text of --tokens, and exit");
    text("--render", o_.render_file,
         "Print the text that the messages of a JSON file become by the chat template, and exit", "FILE");
    begin("Allowed texts");
    text("--json-schema", o_.schema_file, "A file with a JSON schema", "FILE");
    text("--grammar", o_.grammar_file, "A file with a grammar in GBNF", "FILE");
    text("--regex", o_.regex, "A regular expression of the whole text", "TEXT");
    text("--accepts", o_.accepts_file, "Check the text of a file, and exit: 0 if it may be written, 1 if not", "FILE");
    begin("Measuring a model");
    text("--perplexity", o_.perplexity_file, "Measure how well the model knows the text of a file", "FILE");
    text("--save-logits", o_.save_logits_file, "Save the logits of the tokens that --perplexity counts", "FILE");
    text("--kl", o_.kl_file, "Compare with logits that another model saved of the same text", "FILE");
    number("--window", o_.window, "Tokens of a window of that text; its second half is counted");
    number("--windows", o_.windows, "Windows to measure with; 0: all");
    number("--sequences", o_.host.open.sequences, "Windows that share the passes");
    begin("Embeddings");
    app_.add_flag("--embed", o_.embed,
                  "Print the embedding of each text that follows, of the prompt, or of each line of a file or of "
                  "standard input, as a line of JSON");
    choice(text("--pooling", w_.pooling, "Of embeddings: " + joined(kPoolingNames) + "; else the model's own", "KIND"),
           kPoolingNames);
    choice(text("--normalize", w_.normalize, "Embeddings of length 1: yes, no; else as in the model", "WHETHER"),
           kYesNo);
  }

  void telling() {
    begin("Reports");
    app_.add_flag("--memory-map", o_.memory_map, "Show the plan as a table; without a prompt that is all");
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

  CLI::Option *prompt = nullptr, *message = nullptr, *system_prompt = nullptr, *max_tokens = nullptr;

 private:
  /// Puts options that are added from now on into a group.
  void begin(const char* group) { app_.option_defaults()->group(group); }
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
  words.budget = std::to_string(o.host.budget >> 20);
  o.host.open.guesses = kUsualGuesses;
  app.option_defaults()->always_capture_default();
  app.allow_windows_style_options(false);  // so that a path may begin with a slash everywhere
  app.option_defaults()->group("Model");
  app.add_option(
         "-m,--model,MODEL", o.model,
         "A .qsf or GGUF file, a Hugging Face directory, http(s) URLs of them, or hf:OWNER/NAME[/FILE][@REVISION]")
      ->type_name("FILE");
  app.add_option("--sha256", o.sha256, "What the model's bytes must have as SHA-256; they are read once more for it")
      ->type_name("HEX");
  // Texts follow the model only with --embed.
  if (std::find(argv, argv + argc, std::string_view("--embed")) != argv + argc) {
    app.add_option("TEXT", o.texts, "A text to embed")->default_str("");
  }
  Table table(app, o, words);
  table.conversion();
  table.generation();
  table.conversations();
  table.memory();
  table.telling();
  const Parsed parsed = qsf::parse(app, argc, argv, {kWords, table.choices(), kManual});
  if (parsed.what == Parsed::What::told) return 0;
  if (parsed.what == Parsed::What::mistake) return refuse(parsed.sentence);
  o.host.budget = read_size(words.budget, kMiB).value_or(0);
  o.prompt_cache_bytes = read_size(words.cache_limit, kMiB).value_or(0);
  const auto* color = std::find(kColors.begin(), kColors.end(), words.color);
  if (color == kColors.end()) return refuse("--color is one of " + joined(kColors) + ", not '" + words.color + "'");
  use_color(static_cast<Color>(color - kColors.begin()));
  if (std::ranges::find(kReasoning, words.reasoning) == kReasoning.end()) {
    return refuse("--reasoning is one of " + joined(kReasoning) + ", not '" + words.reasoning + "'");
  }
  o.shows_thoughts = words.reasoning == kReasoning[0];
  if (std::ranges::find(kSpeculation, words.speculate) == kSpeculation.end()) {
    return refuse("--speculate is one of " + joined(kSpeculation) + ", not '" + words.speculate + "'");
  }
  if (words.speculate == kSpeculation[0]) o.host.open.guesses = 0;
  if (table.prompt->count() > 0) o.prompt = words.prompt;
  o.as_message = table.message->count() > 0;
  if (o.as_message && o.prompt) return refuse("--message and --prompt exclude each other");
  if (o.as_message) o.prompt = words.message;
  if (table.system_prompt->count() > 0) o.system_prompt = words.system_prompt;
  if (o.chat && table.max_tokens->count() == 0) o.max_tokens = std::numeric_limits<std::uint32_t>::max();
  const std::array cache{words.kv, words.keys, words.values};
  if (const std::optional<std::string> wrong = cache_mistake(o, cache)) return refuse(*wrong);
  if (!o.accepts_file.empty()) {
    const std::optional<std::string> wrong = grammar_mistake(o);
    return wrong ? std::optional(refuse(*wrong)) : std::nullopt;
  }
  if (const std::optional<std::string> wrong = mistake(o, words.tokens)) return refuse(*wrong);
  if (const std::optional<std::string> wrong = words.sampling.read(o)) return refuse(*wrong);
  if (const std::optional<std::string> wrong = embedding_mistake(o, words.pooling, words.normalize)) {
    return refuse(*wrong);
  }
  const bool has_prompt = !o.texts.empty() || o.prompt || !o.prompt_file.empty() || !o.tokens.empty() || o.chat ||
                          o.interactive || o.bench || !o.perplexity_file.empty() || !o.render_file.empty();
  if (!has_prompt && (o.tokenize || !o.memory_map)) {
    if (sys::is_terminal(sys::kInput))
      return refuse("nothing to do: give --prompt, --tokens, --chat, --interactive, --bench or --perplexity");
    o.prompt_from_input = true;
  }
  o.host.open.isa = o.isa;
  o.host.open.all_logits = (!o.logits_file.empty() && !o.embed) || !o.perplexity_file.empty();
  o.host.open.logprobs = o.logprobs.has_value();
  o.host.source.kind = o.source;
  o.host.source.quant_type = o.quant_type;
  o.cache = cache_of(o.cache);
  o.host.source.cache = o.cache;
  o.host.expect = o.memory_map || o.verbose || o.bench;
  return std::nullopt;
}

}  // namespace qsf::run
