#include "native/run_options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace qsf::run {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr double kMiB = 1 << 20;

int refuse(const std::string& sentence) {
  std::fprintf(stderr, "qsf-run: bad_argument: %s\n", sentence.c_str());
  return 2;
}

template <class Names>
std::string joined(const Names& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

std::vector<std::string_view> isa_names() {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; !instruction_set(i).empty(); ++i) names.push_back(instruction_set(i));
  return names;
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

std::string all_of_stdin() {
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, n);
  if (text.ends_with('\n')) text.pop_back();  // the line end that echo and editors add
  return text;
}

/// What CLI11 has no notion of; a sentence when something does not fit.
std::optional<std::string> mistake(Options& o, double budget_mib, const std::string& kv, const std::string& tokens) {
  if (!(budget_mib > 0) || budget_mib > 1e9) return "--ram-budget takes MiB, a number above 0";
  o.host.budget = static_cast<std::uint64_t>(std::llround(budget_mib * kMiB));
  if (o.isa.empty()) {
    if (const char* from_environment = std::getenv("QSF_ISA")) o.isa = from_environment;
  }
  if (!o.isa.empty() && !contains(isa_names(), o.isa)) {
    return "there is no instruction set '" + o.isa + "' here, only " + joined(isa_names());
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
  if (o.interactive && (o.prompt || !o.tokens.empty())) return "--interactive reads its prompts from standard input";
  if (o.interactive && o.bench) return "--interactive and --bench exclude each other";
  if (o.prompt && !o.tokens.empty()) return "--prompt and --tokens exclude each other";
  if (!o.logits_file.empty() && (o.interactive || o.bench)) return "--logits needs one prompt";
  if (!o.receipt_file.empty() && o.interactive) return "--receipt needs one prompt";
  return std::nullopt;
}

}  // namespace

std::optional<int> parse(int argc, char** argv, Options& o) {
  CLI::App app("Runs a language model inside a fixed memory budget.", "qsf-run");
  double budget_mib = static_cast<double>(o.host.budget) / kMiB;
  std::string kv, tokens;
  std::string prompt;
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", "qsf-run " QSF_VERSION);
  app.add_option("MODEL", o.model, "A .qsf file, or its http(s) URL")->required();

  const auto text = [&](const char* name, std::string& to, const std::string& help, const char* type) {
    return app.add_option(name, to, help)->type_name(type);
  };
  auto* prompt_option = text("--prompt", prompt, "The text to continue; else it is read from standard input", "TEXT");
  text("--tokens", tokens, "Token ids instead of text; nothing is added to them", "1,2,3");
  app.add_option("--max-tokens", o.max_tokens, "Tokens to generate at most; 0: compute the prompt only");
  app.add_option("--temperature", o.sampler.temperature, "0: always the most likely token");
  app.add_option("--top-p", o.sampler.top_p, "Sample from the likeliest tokens that make up this share; 1: from all");
  app.add_option("--top-k", o.sampler.top_k, "Sample from this many of the likeliest tokens; 0: from all");
  app.add_option("--repetition-penalty", o.sampler.repetition_penalty, "Above 1: tokens already there become rarer");
  app.add_option("--seed", o.sampler.seed, "The same seed gives the same text");
  app.add_option("--stop", o.stops, "Stop where the text has this; may be given again")
      ->type_name("TEXT")
      ->default_str("")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false);
  app.add_flag("--ignore-eos", o.ignore_eos, "Go on after the model's end token");

  app.add_option("--ram-budget", budget_mib, "Memory for everything, in MiB")->type_name("MIB");
  app.add_option("--max-seq-len", o.host.open.max_seq_len, "Tokens of context; 0: what the model and budget allow");
  app.add_option("--chunk", o.host.open.chunk, "Prompt tokens per pass over the weights; 0: the plan's choice");
  app.add_option("--ring", o.host.open.ring_slots, "Slots that weights are streamed through; 0: the plan's choice");
  app.add_flag("--stream-all", o.host.open.stream_all, "Keep no weights that can be streamed");
  text("--kv", kv, "How keys and values are kept: " + joined(kKvNames) + "; else the plan's choice", "TYPE");
  text("--source", o.source, "How a file is read: " + joined(source_names()), "KIND");
  text("--isa", o.isa, "Instruction set: " + joined(isa_names()) + "; else the best, or what QSF_ISA says", "NAME");
  app.add_option("--threads", o.host.threads, "Computing threads; 0: one per physical core")
      ->check(CLI::Range(0u, kMaxThreads));
  app.add_flag("--pin", o.host.pin, "Keep each computing thread but the first on a core of its own");

  app.add_flag("--interactive", o.interactive, "Each line of standard input continues the text");
  app.add_flag("--bench", o.bench, "Measure tokens per second of prompt and generation, and exit");
  app.add_flag("--memory-map", o.memory_map, "Show the plan as a table; without a prompt that is all");
  text("--logits", o.logits_file, "Write the prompt's logits: float32 [tokens][vocabulary]", "FILE");
  text("--receipt", o.receipt_file, "Write what ran as JSON", "FILE");
  app.add_flag("--verbose", o.verbose, "Tell on stderr what is planned, used and measured");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return refuse(error.what());
  }
  if (prompt_option->count() > 0) o.prompt = prompt;
  if (const std::optional<std::string> wrong = mistake(o, budget_mib, kv, tokens)) return refuse(*wrong);
  if (!o.generates() && !o.memory_map) {
    if (::isatty(STDIN_FILENO) != 0) return refuse("nothing to do: give --prompt, --tokens, --interactive or --bench");
    o.prompt = all_of_stdin();
  }
  o.host.open.isa = o.isa;
  o.host.open.all_logits = !o.logits_file.empty();
  o.host.source.kind = o.source;
  return std::nullopt;
}

}  // namespace qsf::run
