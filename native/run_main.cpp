// qsf-run: text in, text out, inside a memory budget. docs/cli.md describes it.
#include <csignal>
#include <cstdio>
#include <optional>
#include <vector>

#include "native/run_chat.h"
#include "native/run_embed.h"
#include "native/run_generate.h"
#include "native/run_input.h"
#include "native/run_kernels.h"
#include "native/run_options.h"
#include "native/run_output.h"
#include "native/run_perplexity.h"
#include "native/run_report.h"
#include "native/run_signal.h"
#include "native/run_terminal.h"
#include "qsf/base/try.h"
#include "system/program.h"

namespace qsf::run {
namespace {

int fail(const Error& error) {
  tell(error);
  return error.code == ErrorCode::cancelled ? exit_code_of(caught_signal()) : 1;
}

Prompt prompt_of(const Options& o, std::span<const std::string_view> stops) {
  Prompt prompt;
  prompt.tokens = o.tokens;
  if (o.prompt) prompt.text = *o.prompt;
  prompt.max_tokens = o.max_tokens;
  prompt.all_logits = !o.logits_file.empty();
  prompt.hash_logits = !o.receipt_file.empty();
  prompt.ignore_eos = o.ignore_eos;
  prompt.sampler = o.sampler;
  prompt.stops = stops;
  return prompt;
}

void note_full_context(const Generation& made, std::uint32_t max_seq_len) {
  if (made.ended != end_name(End::context)) return;
  const Error sentence =
      made.generated_ids.empty()
          ? make_error(ErrorCode::context_full,
                       "the prompt fills the context of {} tokens: nothing can be generated (see --max-seq-len)",
                       max_seq_len)
          : make_error(ErrorCode::context_full, "the context of {} tokens is full (see --max-seq-len)", max_seq_len);
  note(sentence.sentence);
}

/// The files that a generation writes, tried before it begins.
struct Outputs {
  std::optional<OutputFile> logits, receipt;
};

std::vector<std::string> inputs_of(const Options& o) {
  std::vector<std::string> inputs;
  if (!is_url(o.model)) inputs.push_back(o.model);
  for (const std::string& file : {o.prompt_file, o.perplexity_file, o.kl_file}) {
    if (!file.empty()) inputs.push_back(file);
  }
  return inputs;
}

Status open_outputs(const Options& o, Outputs& out) {
  const std::vector<std::string> inputs = inputs_of(o);
  const auto open = [&](const std::string& path, std::optional<OutputFile>& to) -> Status {
    if (path.empty()) return {};
    Result<OutputFile> file = OutputFile::create(path, inputs);
    if (!file) return file.error();
    to.emplace(std::move(*file));
    return {};
  };
  QSF_TRY(open(o.logits_file + o.save_logits_file, out.logits));  // one of them is empty
  QSF_TRY(open(o.receipt_file, out.receipt));
  if (out.logits && out.receipt && out.logits->path() == out.receipt->path()) {
    return make_error(ErrorCode::bad_argument, "{} and --receipt are both to be {}",
                      o.logits_file.empty() ? "--save-logits" : "--logits", out.logits->path());
  }
  return {};
}

template <class Made>
Status finish_outputs(const Options& o, Host& host, const Made& made, Outputs& out) {
  if (out.logits) QSF_TRY(out.logits->commit());
  if (!out.receipt) return {};
  const std::string receipt = receipt_of(o, host, made);
  QSF_TRY(out.receipt->write(std::as_bytes(std::span(receipt))));
  return out.receipt->commit();
}

int run_once(const Options& o, Host& host, const Prompt& prompt, const Chat* chat, Progress* progress) {
  Outputs outputs;
  if (const Status opened = open_outputs(o, outputs); !opened) return fail(opened.error());
  const auto begun = [progress] {
    if (progress != nullptr) progress->end();
  };
  Sinks sinks;
  const std::function<Status(std::string_view)> shown = chat != nullptr ? speaker(host.session(), *chat) : show;
  sinks.text = [&](std::string_view piece) {
    begun();
    return shown(piece);
  };
  if (outputs.logits) {
    sinks.all_logits = [&](std::span<const float> rows) { return outputs.logits->write(std::as_bytes(rows)); };
  }
  const Result<Generation> made = generate(host, prompt, sinks);
  begun();
  if (!made) return fail(made.error());
  if (sys::is_terminal(sys::kOutput)) (void)show("\n");
  note_full_context(*made, host.session().stats().max_seq_len);
  if (o.verbose) print_speed(stderr, *made, host);
  if (const Status written = finish_outputs(o, host, *made, outputs); !written) return fail(written.error());
  return made->ended == end_name(End::cancelled) ? exit_code_of(caught_signal()) : 0;
}

int run_perplexity(const Options& o, Host& host, Measured& measured, Progress* progress) {
  Outputs outputs;
  if (const Status opened = open_outputs(o, outputs); !opened) return fail(opened.error());
  const Result<Perplexity> made = measure_perplexity(o, host, measured, outputs.logits ? &*outputs.logits : nullptr);
  if (progress != nullptr) progress->end();
  if (!made) return fail(made.error());
  print_perplexity(stdout, *made);
  if (const Status written = finish_outputs(o, host, *made, outputs); !written) return fail(written.error());
  return 0;
}

/// Whether the line is shorter than an empty context.
bool fits_alone(Session& session, std::string_view line) {
  std::vector<std::uint32_t> ids(session.stats().max_seq_len);
  const Result<std::uint32_t> n = session.tokenize(line, true, ids);
  return n && *n < ids.size();
}

/// Continues the sequence by a line, or begins anew with it where the context is full.
Result<Generation> answer(Host& host, const Prompt& prompt) {
  Session& session = host.session();
  Result<Generation> made = generate(host, prompt, {show, nullptr});
  if (made || made.error().code != ErrorCode::context_full || session.tokens().empty()) return made;
  if (!fits_alone(session, prompt.text)) {
    return make_error(ErrorCode::context_full, "the line has more tokens than the context of {} has room for",
                      session.stats().max_seq_len);
  }
  note("the context is full; the text begins anew");
  QSF_TRY(session.rewind(0));
  return generate(host, prompt, {show, nullptr});
}

int run_interactive(const Options& o, Host& host, Prompt prompt) {
  Session& session = host.session();
  Lines lines(longest_text(session));
  std::string line;
  for (Lines::Kind kind = lines.next(line); kind != Lines::Kind::end; kind = lines.next(line)) {
    if (kind == Lines::Kind::too_long) {
      tell(make_error(ErrorCode::context_full, "the line is longer than the context can hold; it is left out"));
      continue;
    }
    if (line.empty()) continue;
    prompt.text = line;
    const Result<Generation> made = answer(host, prompt);
    if (!made && !is_of_a_line(made.error().code)) return fail(made.error());
    if (!made) {
      const Error& e = made.error();
      tell(make_error(e.code, "{}; the line is left out", e.sentence));
      continue;
    }
    if (const Status shown = show("\n"); !shown) return fail(shown.error());
    note_full_context(*made, session.stats().max_seq_len);
    if (o.verbose) print_speed(stderr, *made, host);
    if (cancelled() && caught_signal() != SIGINT) break;
    cancelled() = false;  // Ctrl-C ends an answer
  }
  return cancelled() ? exit_code_of(caught_signal()) : 0;
}

Status print_tokens(Session& session, std::string_view text, std::vector<std::uint32_t> ids) {
  if (ids.empty()) {
    ids.resize(session.stats().max_seq_len);
    QSF_LET(n, session.tokenize(text, true, ids));
    ids.resize(n);
  }
  std::string line;
  for (const std::uint32_t id : ids) line += (line.empty() ? "" : ",") + std::to_string(id);
  return show(line + "\n");
}

Status print_text(const Session& session, std::span<const std::uint32_t> ids) {
  const std::uint32_t vocab_size = session.stats().vocab_size;
  for (const std::uint32_t id : ids) {
    if (id >= vocab_size) {
      return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", id, vocab_size);
    }
    QSF_TRY(show(session.detokenize(id)));
  }
  return {};
}

int exit_code(const Status& status) { return status ? 0 : fail(status.error()); }

int run_opened(Options& o, Host& host, std::optional<Measured>& measured, Progress* progress) {
  const Stats s = host.session().stats();
  if (o.verbose) print_setting(stderr, o, host);
  if (o.memory_map) print_memory_map(o.generates() ? stderr : stdout, host);
  const bool context_asked = !measured || measured->context_asked;
  if (context_asked && o.host.open.max_seq_len > s.model_seq_len) {
    note(make_error(ErrorCode::bad_argument, "the model was made for {} tokens of context; beyond, text may get worse",
                    s.model_seq_len)
             .sentence);
  }
  if (o.embed) return o.generates() ? exit_code(embed_all(o, host, inputs_of(o))) : 0;
  if (measured) return run_perplexity(o, host, *measured, progress);
  if (o.reads_prompt()) {
    Result<std::string> text = read_text(o.prompt_file, longest_text(host.session()));
    if (!text) return fail(text.error());
    o.prompt = std::move(*text);
  }
  std::vector<std::string_view> stops(o.stops.begin(), o.stops.end());
  if (o.chat) return converse(o, host, prompt_of(o, stops));
  std::optional<Chat> chat;
  if (o.system_prompt) {
    Result<Chat> opened = Chat::open(host.session());
    if (!opened) return fail(opened.error());
    Result<std::vector<std::uint32_t>> ids = ask(o, host, *opened);
    if (!ids) return fail(ids.error());
    o.tokens = std::move(*ids);
    chat.emplace(std::move(*opened));
    if (!chat->stop().empty()) stops.push_back(chat->stop());
  }
  if (o.tokenize) return exit_code(print_tokens(host.session(), *o.prompt, o.tokens));
  if (o.detokenize) return exit_code(print_text(host.session(), o.tokens));
  if (!o.generates()) return 0;
  Prompt prompt = prompt_of(o, stops);
  if (chat) prompt.end_tokens = chat->end_tokens();
  if (o.interactive) return run_interactive(o, host, prompt);
  if (o.bench) return exit_code(bench(stdout, o, host));
  return run_once(o, host, prompt, chat ? &*chat : nullptr, progress);
}

int run(int argc, char** argv) {
  Options o;
  if (const std::optional<int> code = parse(argc, argv, o)) return *code;
  if (const Status apart = check_output(inputs_of(o)); !apart) return fail(apart.error());
  std::optional<Measured> measured;
  if (!o.perplexity_file.empty()) {
    Result<Measured> read = read_measured(o);
    if (!read) return fail(read.error());
    measured.emplace(std::move(*read));
  }
  std::atomic<std::uint64_t> received{0};
  o.host.source.received = &received;
  std::optional<Progress> progress;
  if (is_url(o.model)) progress.emplace(o.model, received);
  const std::string kernel_file = o.isa.empty() && o.generates() ? kernel_file_of(o.kernel_file) : "";
  KernelSpeeds kernels = read_kernel_speeds(kernel_file);
  if (!kernel_file.empty()) o.host.kernels = &kernels;
  const Result<std::unique_ptr<Host>> opened = Host::open(o.model, o.host, cancelled());
  if (progress && (!opened || o.memory_map || o.verbose || o.interactive || o.chat || o.bench)) progress->end();
  if (!opened) return fail(opened.error());
  if ((*opened)->measured_kernels()) {
    const Status kept = write_kernel_speeds(kernel_file, kernels);
    if (!kept && o.verbose) note(kept.error().sentence);
  }
  catch_signals();
  return run_opened(o, **opened, measured, progress ? &*progress : nullptr);
}

int main(int argc, char** argv) {
  sys::hold_standard_files();
  const int code = run(argc, argv);
  const Status finished = finish_output();
  return finished || code != 0 ? code : fail(finished.error());
}

}  // namespace
}  // namespace qsf::run

int main(int argc, char** argv) { return qsf::sys::run_program(argc, argv, qsf::run::main); }
