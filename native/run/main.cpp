// qsf-run: text in, text out, inside a memory budget. docs/reference/cli.md describes it.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <optional>
#include <vector>

#include "native/cli/input.h"
#include "native/cli/messages.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/host/saved_file.h"
#include "native/run/accepts.h"
#include "native/run/answer.h"
#include "native/run/chat.h"
#include "native/run/digest.h"
#include "native/run/embed.h"
#include "native/run/generate.h"
#include "native/run/kernels.h"
#include "native/run/options.h"
#include "native/run/output.h"
#include "native/run/perplexity.h"
#include "native/run/render.h"
#include "native/run/report.h"
#include "native/run/session_file.h"
#include "native/run/turns.h"
#include "native/sources/address.h"
#include "qsf/base/try.h"
#include "system/out_of_memory.h"
#include "system/program.h"
#include "threads/thread.h"

namespace qsf::run {
namespace {

[[gnu::constructor(sys::kBeforeAll)]] void before_all() {
  sys::end_without_memory(
      1, "qsf-run: out_of_memory: the system refused memory that is needed in addition to the budget\n");
}

Prompt prompt_of(const Options& o, std::span<const std::string_view> stops) {
  Prompt prompt;
  prompt.tokens = o.tokens;
  prompt.anew = !o.continues() && !o.interactive;
  if (o.prompt) prompt.text = *o.prompt;
  prompt.max_tokens = o.max_tokens;
  prompt.all_logits = !o.logits_file.empty();
  prompt.hash_logits = !o.receipt_file.empty();
  prompt.ignore_eos = o.ignore_eos;
  prompt.logprobs = o.logprobs.has_value();
  prompt.top_logprobs = o.logprobs.value_or(0);
  prompt.sampler = o.sampling();
  prompt.stops = stops;
  return prompt;
}

void note_full_context(const Generation& made, const Stats& s) {
  if (made.ended != end_name(End::context)) return;
  const Error sentence =
      made.generated_ids.empty()
          ? make_error(ErrorCode::context_full,
                       "the prompt fills the context of {} tokens: nothing can be generated; {} would help",
                       s.max_seq_len, s.more_context)
          : make_error(ErrorCode::context_full, "the context of {} tokens is full: {} would help", s.max_seq_len,
                       s.more_context);
  note(sentence.sentence);
}

/// Notes that the server can guess parts of the text.
void note_watched_experts(const Session& session) {
  const Stats s = session.stats();
  std::uint32_t segment = 0;
  while (segment < s.n_segments && !session.is_by_text(segment)) ++segment;
  if (segment == s.n_segments) return;
  note(make_error(ErrorCode::unsupported,
                  "which experts are read depends on the text, and the server sees them: it may guess parts of the "
                  "text. With --ram-budget {} it sees none of them",
                  (s.resident_budget + (1u << 20) - 1) >> 20)
           .sentence);
}

/// The files that a generation writes, opened before it begins.
struct Outputs {
  std::optional<OutputFile> logits, receipt;
};

std::vector<std::string> inputs_of(const Options& o) {
  std::vector<std::string> inputs;
  if (!o.model.empty() && !is_address(o.model)) inputs.push_back(o.model);
  for (const std::string& file :
       {o.prompt_file, o.perplexity_file, o.kl_file, o.render_file, o.template_file, o.tools_file, o.session_file}) {
    if (!file.empty()) inputs.push_back(file);
  }
  return inputs;
}

Status open_outputs(const Options& o, const Host& host, Outputs& out) {
  std::vector<std::string> inputs = inputs_of(o);
  if (host.made() != nullptr) std::ranges::move(host.made()->paths(), std::back_inserter(inputs));
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

/// Returns the hash of the model's tables. The checksums of a made file that are not known are computed first.
Result<std::string> model_hash(Host& host) {
  if (host.made() == nullptr) return std::string(host.session().model_hash());
  return host.made()->hash(cancelled());
}

template <class Made>
Status finish_outputs(const Options& o, Host& host, const Made& made, Outputs& out) {
  if (out.logits) QSF_TRY(out.logits->commit());
  if (!out.receipt) return {};
  QSF_LET(hash, model_hash(host));
  const std::string receipt = receipt_of(o, host, made, hash);
  QSF_TRY(out.receipt->write(std::as_bytes(std::span(receipt))));
  return out.receipt->commit();
}

/// Runs one generation. `parts` reads the answer, if the prompt is a conversation, and the answer is added to `turns`.
int run_once(const Options& o, Host& host, const Prompt& prompt, chat::AnswerParts* parts, const Extras& extras,
             std::vector<Turn>& turns, Progress* progress) {
  Outputs outputs;
  if (const Status opened = open_outputs(o, host, outputs); !opened) return fail(opened.error());
  const auto begun = [progress] {
    if (progress != nullptr) progress->end();
  };
  Sinks sinks;
  Answer answer(o, count_calls(turns));
  if (parts != nullptr) {
    sinks.parts = parts;
    sinks.part = [&](const chat::Part& part) {
      begun();
      return answer.add(part);
    };
  } else {
    sinks.text = [&](std::string_view piece) {
      begun();
      return show(piece);
    };
  }
  if (outputs.logits) {
    sinks.all_logits = [&](std::span<const float> rows) { return outputs.logits->write(std::as_bytes(rows)); };
  }
  const Result<Generation> made = generate(host, prompt, sinks, extras);
  begun();
  if (!made) return fail(made.error());
  if (parts != nullptr) add_answer(answer, turns);
  if (sys::is_terminal(sys::kOutput)) (void)show("\n");
  note_full_context(*made, host.session().stats());
  if (o.verbose) print_speed(stderr, *made, host);
  if (const Status written = finish_outputs(o, host, *made, outputs); !written) return fail(written.error());
  return made->ended == end_name(End::cancelled) ? exit_code_of(caught_signal()) : 0;
}

int run_perplexity(const Options& o, Host& host, Measured& measured, Progress* progress) {
  Outputs outputs;
  if (const Status opened = open_outputs(o, host, outputs); !opened) return fail(opened.error());
  if (progress != nullptr) progress->end();
  const Result<Perplexity> made = measure_perplexity(o, host, measured, outputs.logits ? &*outputs.logits : nullptr);
  if (!made) return fail(made.error());
  print_perplexity(stdout, *made);
  if (const Status written = finish_outputs(o, host, *made, outputs); !written) return fail(written.error());
  return 0;
}

/// Returns context_full unless the line is shorter than an empty context.
Status check_alone(Session& session, std::string_view line) {
  const Stats s = session.stats();
  std::vector<std::uint32_t> ids(std::min<std::size_t>(s.max_seq_len - 1, line.size() + 8));
  const Result<std::uint32_t> n = session.tokenize(line, true, ids);
  if (n) return {};
  if (n.error().code != ErrorCode::context_full) return n.error();
  return make_error(ErrorCode::context_full, "{} and an answer: {} would help", n.error().sentence, s.more_context);
}

/// Continues the sequence by a line, or begins anew with it if the context is full.
Result<Generation> answer(Host& host, const Prompt& prompt, const Extras& extras) {
  Session& session = host.session();
  Result<Generation> made = generate(host, prompt, {show, nullptr}, extras);
  if (made || made.error().code != ErrorCode::context_full || session.tokens().empty()) return made;
  QSF_TRY(check_alone(session, prompt.text));
  note("the context is full; the text begins anew");
  QSF_TRY(session.rewind(0));
  return generate(host, prompt, {show, nullptr}, extras);
}

/// `rest` is text before the first line.
int run_interactive(const Options& o, Host& host, Prompt prompt, const Extras& extras, std::string& rest) {
  Session& session = host.session();
  Messages messages(longest_text(session));
  std::string line;
  for (LineKind kind = messages.next(line); kind != LineKind::end; kind = messages.next(line)) {
    if (messages.typed() && asks_to_end(line)) break;
    if (kind == LineKind::too_long) {
      tell(make_error(ErrorCode::context_full, "the line is longer than the context can hold; it is left out"));
      continue;
    }
    if (line.empty()) continue;
    const std::string text = rest + line;
    prompt.text = text;
    const Result<Generation> made = answer(host, prompt, extras);
    if (!made && made.error().code != ErrorCode::cancelled) {
      const Error& e = made.error();
      if (!is_of_a_line(e.code)) return fail(e);
      tell(make_error(e.code, "{}; the line is left out", e.sentence));
      continue;
    }
    rest.clear();
    if (const Status shown = show("\n"); !shown) return fail(shown.error());
    if (made) note_full_context(*made, session.stats());
    if (made && o.verbose) print_speed(stderr, *made, host);
    if (cancelled() && caught_signal() != SIGINT) break;
    go_on();  // Ctrl-C ends an answer
  }
  return cancelled() ? exit_code_of(caught_signal()) : 0;
}

Status print_tokens(Session& session, std::string_view text, std::vector<std::uint32_t> ids) {
  if (ids.empty()) {
    ids.resize(std::min<std::size_t>(session.stats().max_seq_len, text.size() + 8));
    QSF_LET(n, session.tokenize(text, true, ids));
    ids.resize(n);
  }
  std::string line;
  for (const std::uint32_t id : ids) line += (line.empty() ? "" : ",") + std::to_string(id);
  return show(line + "\n");
}

Status print_text(const Session& session, std::span<const std::uint32_t> ids) {
  const std::uint32_t vocab_size = session.stats().vocab_size;
  std::string text;  // in one piece: a control character may have two tokens
  for (const std::uint32_t id : ids) {
    if (id >= vocab_size) {
      return make_error(ErrorCode::bad_token, "token {} is not in the vocabulary of {}", id, vocab_size);
    }
    text += session.detokenize(id);
  }
  return show(text);
}

int exit_code(const Status& status) { return status ? 0 : fail(status.error()); }

/// Puts the text that the file of --session ends with before the prompt.
Status add_rest(Options& o, Session& session, SessionFile& file) {
  if (file.note.rest.empty() || o.interactive) return {};
  if (o.prompt) o.prompt->insert(0, file.note.rest);
  if (!o.tokens.empty()) QSF_TRY(put_before(session, file.note.rest, o.tokens));
  file.note.rest.clear();
  return {};
}

/// Generates texts that continue the sequence and the conversation of `file`.
int run_texts(Options& o, Host& host, SessionFile& file, const Extras& extras, Progress* progress) {
  Session& session = host.session();
  std::vector<std::string_view> stops(o.stops.begin(), o.stops.end());
  if (o.chat) return converse(o, host, prompt_of(o, stops), extras, file.note.turns);
  std::optional<Chat> chat;
  std::optional<Question> question;
  if (o.system_prompt || o.as_message) {
    Result<Chat> opened = open_chat(o, session, extras.guide);
    if (!opened) return fail(opened.error());
    chat.emplace(std::move(*opened));
    if (!chat->answers().stop().empty()) stops.push_back(chat->answers().stop());
    Result<Question> asked = ask(o, host, *chat, stops, file.note.turns);
    if (!asked) return fail(asked.error());
    question.emplace(std::move(*asked));
    o.tokens = std::move(question->ids);
  }
  if (o.tokenize) return exit_code(print_tokens(session, *o.prompt, o.tokens));
  if (o.detokenize) return exit_code(print_text(session, o.tokens));
  if (!o.generates()) return 0;
  if (const Status added = add_rest(o, session, file); !added) return fail(added.error());
  Prompt prompt = prompt_of(o, stops);
  if (chat) prompt.end_tokens = chat->answers().end_tokens();
  if (o.interactive) return run_interactive(o, host, prompt, extras, file.note.rest);
  if (o.bench) return exit_code(bench(stdout, o, host));
  return run_once(o, host, prompt, question ? &question->parts : nullptr, extras, file.note.turns, progress);
}

/// Does the same from the file of --session and to it, if there is one. An error leaves the file of a text as it was,
/// because the prompt can be given again. A conversation is saved with the answers that it has.
int run_session(Options& o, Host& host, const Extras& extras, Progress* progress) {
  if (o.session_file.empty()) {
    SessionFile none;
    return run_texts(o, host, none, extras, progress);
  }
  Result<SessionFile> file = SessionFile::open(o.session_file, host.session(), o.converses());
  if (!file) return fail(file.error());
  const int code = run_texts(o, host, *file, extras, progress);
  if (code != 0 && !cancelled() && !o.chat) return code;
  const Status saved = file->save(host.session());
  return saved ? code : fail(saved.error());
}

int run_opened(Options& o, Host& host, std::optional<Measured>& measured, Progress* progress) {
  const Stats s = host.session().stats();
  if (o.verbose) print_setting(stderr, o, host);
  if (o.memory_map) print_memory_map(o.generates() ? stderr : stdout, host);
  if (is_address(o.model) && o.generates()) note_watched_experts(host.session());
  const bool refused = measured && !measured->context_asked && s.max_seq_len > s.model_seq_len;  // by run_perplexity()
  if (!s.warning.empty() && !refused) note(s.warning);
  if (!o.render_file.empty()) return render(o, &host.session());
  if (o.embed) {
    const Result<std::uint64_t> left_out = o.generates() ? embed_all(o, host, inputs_of(o)) : std::uint64_t{0};
    return !left_out ? fail(left_out.error()) : *left_out == 0 ? 0 : 1;
  }
  if (measured) return run_perplexity(o, host, *measured, progress);
  if (o.reads_prompt()) {
    Result<std::string> text = read_prompt(o.prompt_file, longest_text(host.session()));
    if (!text) return fail(text.error());
    o.prompt = std::move(*text);
  }
  Result<std::optional<chat::Guide>> opened_guide = open_guide(o, host.session());
  if (!opened_guide) return fail(opened_guide.error());
  chat::Guide* const guide = *opened_guide ? &**opened_guide : nullptr;
  if (!o.session_file.empty() || !o.prompt_cache.empty()) {
    if (const Status known = host.know_hash(); !known) return fail(known.error());
  }
  std::optional<PromptCache> cache;
  if (!o.prompt_cache.empty()) {
    Result<PromptCache> opened = PromptCache::open(o.prompt_cache, o.prompt_cache_bytes);
    if (!opened) return fail(opened.error());
    cache.emplace(std::move(*opened));
  }
  return run_session(o, host, {guide, cache ? &*cache : nullptr}, progress);
}

int run(int argc, char** argv) {
  Options o;
  if (const std::optional<int> code = parse(argc, argv, o)) return *code;
  if (!o.accepts_file.empty()) return run_accepts(o);
  if (const Status apart = check_output(inputs_of(o)); !apart) return fail(apart.error());
  if (o.model.empty()) return render(o, nullptr);
  std::optional<Measured> measured;
  if (!o.perplexity_file.empty()) {
    Result<Measured> read = read_measured(o);
    if (!read) return fail(read.error());
    measured.emplace(std::move(*read));
  }
  std::atomic<std::uint64_t> received{0};
  o.host.source.received = &received;
  std::optional<Progress> progress;
  if (is_address(o.model)) progress.emplace(o.model, received, o.verbose);
  if (!o.sha256.empty()) {
    const Status same = check_digest(o.model, o.sha256, o.host.source, cancelled());
    if (!same && progress) progress->end();
    if (!same) return fail(same.error());
  }
  const std::string kernel_file = o.isa.empty() && o.generates() ? kernel_file_of(o.kernel_file) : "";
  KernelSpeeds kernels = read_kernel_speeds(kernel_file);
  if (!kernel_file.empty()) o.host.kernels = &kernels;
  const Result<std::unique_ptr<Host>> opened = Host::open(o.model, o.host, cancelled());
  if (progress && (!opened || o.memory_map || o.verbose || o.interactive || o.chat || o.bench)) progress->end();
  if (!opened) return fail(opened.error());
  if (Thread::refused() != 0) {
    note(make_error(ErrorCode::none,
                    "the system refused threads, by a limit of processes or of memory: it computes with {}",
                    (*opened)->threads())
             .sentence);
  }
  if ((*opened)->measured_kernels()) {
    const Status kept = write_kernel_speeds(kernel_file, kernels);
    if (!kept && o.verbose) note(kept.error().sentence);
  }
  for (const std::string& sentence : (*opened)->notes()) note(printable(sentence));
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
