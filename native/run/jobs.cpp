#include "native/run/jobs.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/cli/input.h"
#include "native/cli/messages.h"
#include "native/cli/signal.h"
#include "native/host/saved_file.h"
#include "native/run/chat.h"
#include "native/run/embed.h"
#include "native/run/generate.h"
#include "native/run/outputs.h"
#include "native/run/render.h"
#include "native/run/report.h"
#include "native/run/rerank.h"
#include "native/run/session_file.h"
#include "native/run/shown.h"
#include "native/run/turns.h"
#include "qsf/base/try.h"
#include "system/program.h"

namespace qsf::run {
namespace {

using Stops = std::vector<std::string_view>;

Prompt prompt_of(const Options& o, std::span<const std::string_view> stops) {
  Prompt prompt;
  prompt.tokens = o.tokens;
  prompt.anew = !o.continues() && o.mode != Mode::interactive;
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

/// The parts of a generation other than its prompt.
struct Setting {
  SessionFile file;
  std::vector<chat::Guide> guides;  // of each text, or none
  std::optional<PromptCache> cache;

  /// Returns those of a single text.
  Extras extras() { return {guides.empty() ? nullptr : guides.data(), cache ? &*cache : nullptr}; }
};

/// Reports a text that the context, or under a grammar the number of tokens, cut. `which` names one of several.
void note_cut(const Options& o, const Generation& made, const Stats& s, const std::string& which = {}) {
  if (made.ended == End::length && (o.has_grammar() || !o.tool_choice.empty()))
    note(which + cut_sentence("text", o.max_tokens));
  if (made.ended != End::context) return;
  const Error sentence =
      made.generated_ids.empty()
          ? make_error(ErrorCode::context_full,
                       "the prompt fills the context of {} tokens: nothing can be generated; {} would help",
                       s.max_seq_len, s.more_context)
          : make_error(ErrorCode::context_full, "the context of {} tokens is full: {} would help", s.max_seq_len,
                       s.more_context);
  note(which + sentence.sentence);
}

/// Runs the generations of one prompt. `question` has the readers of the answers, if the prompt is a conversation, and
/// a single answer is added to `turns`.
int run_once(const Options& o, Host& host, const Prompt& prompt, Question* question, Setting& setting,
             Progress* progress) {
  Outputs outputs;
  if (const Status opened = outputs.open(o, host); !opened) return fail(opened.error());
  const auto begun = [progress] {
    if (progress != nullptr) progress->end();
  };
  std::vector<Turn>& turns = setting.file.note.turns;
  ShownTexts shown(o, question != nullptr, count_calls(turns), begun);
  std::vector<Continuation> texts(o.answers);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    Sinks& sinks = texts[i].sinks;
    if (question != nullptr) {
      sinks.parts = i == 0 ? &question->parts : &question->more[i - 1];
      sinks.part = [&shown, i](const chat::Part& part) { return shown.add(i, part); };
    } else {
      sinks.text = [&shown, i](std::string_view piece) { return shown.add(i, {AnswerPart::text, piece}); };
    }
    sinks.end = [&shown, i] { return shown.end(i); };
    if (!setting.guides.empty()) texts[i].guide = &setting.guides[i];
  }
  if (outputs.logits) {
    texts.front().sinks.all_logits = [&](std::span<const float> rows) {
      return outputs.logits->write(std::as_bytes(rows));
    };
  }
  const Result<std::vector<Generation>> made = generate(host, prompt, texts, setting.extras().cache);
  begun();
  if (!made) return fail(made.error());
  if (question != nullptr && o.answers == 1) add_answer(shown.answer(0), turns);
  if (o.answers == 1 && sys::is_terminal(sys::kOutput)) (void)show("\n");
  for (std::size_t i = 0; i < made->size(); ++i) {
    const std::string which = o.answers == 1 ? "" : "answer " + std::to_string(i + 1) + ": ";
    note_cut(o, (*made)[i], host.session().stats(), which);
  }
  if (o.verbose) print_speed(stderr, *made, host);
  if (const Status written = outputs.finish(o, host, *made); !written) return fail(written.error());
  const auto is_cancelled = [](const Generation& one) { return one.ended == End::cancelled; };
  return std::ranges::any_of(*made, is_cancelled) ? exit_code_of(caught_signal()) : 0;
}

/// Returns context_full unless the line is shorter than an empty context.
Status check_alone(Session& session, std::string_view line) {
  const Stats s = session.stats();
  std::vector<std::uint32_t> ids(std::min<std::size_t>(s.max_seq_len - 1, line.size() + 8));
  const Result<std::uint32_t> n = session.tokenize(line, true, ids);
  if (n) return {};
  if (n.error().code != ErrorCode::context_full) return n.error();
  return with_advice(session, make_error(ErrorCode::context_full, "{} and an answer", n.error().sentence));
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
int answer_lines(const Options& o, Host& host, Prompt prompt, const Extras& extras, std::string& rest) {
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
    if (made) note_cut(o, *made, session.stats());
    if (made && o.verbose) print_speed(stderr, std::span(&*made, 1), host);
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
  if (file.note.rest.empty()) return {};
  if (o.prompt) o.prompt->insert(0, file.note.rest);
  if (!o.tokens.empty()) QSF_TRY(put_before(session, file.note.rest, o.tokens));
  file.note.rest.clear();
  return {};
}

Stops stops_of(const Options& o) { return {o.stops.begin(), o.stops.end()}; }

/// Reads the prompt from its file or standard input, unless the options have it. It has at most `most` bytes, or as
/// many as the context can hold.
Status have_prompt(Options& o, Session& session, std::optional<std::size_t> most = {}) {
  if (!o.reads_prompt()) return {};
  QSF_LET(text, read_prompt(o.prompt_file, most ? *most : longest_text(session)));
  o.prompt = std::move(text);
  return {};
}

/// A prompt in the chat template: the template, and the request, which views it. Both are empty without a conversation.
struct Asked {
  std::optional<Chat> chat;
  std::optional<Question> question;
};

/// Puts a message in the chat template if the options converse: its tokens become the prompt, and the template's stop
/// text one of `stops`.
Status ask(Options& o, Host& host, std::span<chat::Guide> guides, Stops& stops, std::vector<Turn>& turns, Asked& out) {
  if (!o.system_prompt && !o.as_message) return {};
  QSF_LET(chat, open_chat(o, host.session(), guides));
  out.chat.emplace(std::move(chat));
  if (!out.chat->answers().stop().empty()) stops.push_back(out.chat->answers().stop());
  QSF_TRY(add_request(o, longest_text(host.session()), turns));
  QSF_LET(question, out.chat->ask(host.session(), messages_of(turns, {}), stops));
  out.question.emplace(std::move(question));
  o.tokens = std::move(out.question->ids);
  return {};
}

Status open_setting(Options& o, Host& host, Setting& out) {
  QSF_TRY(have_prompt(o, host.session()));
  QSF_LET(guides, open_guides(o, host.session()));
  out.guides = std::move(guides);
  if (!o.session_file.empty() || !o.prompt_cache.empty()) QSF_TRY(host.know_hash());
  if (!o.prompt_cache.empty()) {
    QSF_LET(cache, PromptCache::open(o.prompt_cache, o.prompt_cache_bytes));
    out.cache.emplace(std::move(cache));
  }
  if (o.session_file.empty()) return {};
  QSF_LET(file, SessionFile::open(o.session_file, host.session(), o.converses()));
  out.file = std::move(file);
  return {};
}

/// Calls `generates` with the setting of a text, from the file of --session and to it, if there is one. An error leaves
/// the file of a text as it was, because the prompt can be given again. A conversation is saved with the answers that
/// it has.
template <class Generates>
int with_setting(Job& job, Generates generates) {
  Options& o = job.options;
  Setting setting;
  if (const Status opened = open_setting(o, job.host, setting); !opened) return fail(opened.error());
  const int code = generates(setting);
  if (o.session_file.empty() || (code != 0 && !cancelled() && o.mode != Mode::chat)) return code;
  const Status saved = setting.file.save(job.host.session());
  return saved ? code : fail(saved.error());
}

Status tokenize(Options& o, Host& host) {
  QSF_TRY(have_prompt(o, host.session()));
  Stops stops = stops_of(o);
  std::vector<Turn> turns;
  Asked asked;
  QSF_TRY(ask(o, host, {}, stops, turns, asked));
  return print_tokens(host.session(), *o.prompt, o.tokens);
}

Status count(Options& o, Session& session) {
  constexpr std::size_t kMost = 64u << 20;  // bytes; a text may be longer than the context
  QSF_TRY(have_prompt(o, session, kMost));
  std::uint32_t n = 0;
  if (o.converses()) {
    std::vector<Turn> turns;
    QSF_LET(chat, open_chat(o, session, {}));
    QSF_TRY(add_request(o, kMost, turns));
    QSF_LET(of_conversation, chat.count(session, messages_of(turns, {})));
    n = of_conversation;
  } else {
    QSF_LET(of_text, count_tokens(session, *o.prompt));
    n = of_text;
  }
  return show(std::to_string(n) + "\n");
}

}  // namespace

int run_generate(Job& job) {
  Options& o = job.options;
  return with_setting(job, [&](Setting& setting) {
    Stops stops = stops_of(o);
    Asked asked;
    if (const Status put = ask(o, job.host, setting.guides, stops, setting.file.note.turns, asked); !put)
      return fail(put.error());
    if (const Status added = add_rest(o, job.host.session(), setting.file); !added) return fail(added.error());
    Prompt prompt = prompt_of(o, stops);
    if (asked.chat) prompt.end_tokens = asked.chat->answers().end_tokens();
    return run_once(o, job.host, prompt, asked.question ? &*asked.question : nullptr, setting, job.progress);
  });
}

int run_chat(Job& job) {
  return with_setting(job, [&](Setting& setting) {
    const Stops stops = stops_of(job.options);
    return converse(job.options, job.host, prompt_of(job.options, stops), setting.extras(), setting.file.note.turns);
  });
}

int run_interactive(Job& job) {
  return with_setting(job, [&](Setting& setting) {
    const Stops stops = stops_of(job.options);
    const Prompt prompt = prompt_of(job.options, stops);
    return answer_lines(job.options, job.host, prompt, setting.extras(), setting.file.note.rest);
  });
}

int run_tokenize(Job& job) { return exit_code(tokenize(job.options, job.host)); }

int run_detokenize(Job& job) { return exit_code(print_text(job.host.session(), job.options.tokens)); }

int run_count(Job& job) { return exit_code(count(job.options, job.host.session())); }

int run_bench(Job& job) {
  const Status read = have_prompt(job.options, job.host.session());
  if (!read) return fail(read.error());
  return exit_code(bench(stdout, job.options, job.host));
}

int run_perplexity(Job& job) {
  const Options& o = job.options;
  Outputs outputs;
  if (const Status opened = outputs.open(o, job.host); !opened) return fail(opened.error());
  if (job.progress != nullptr) job.progress->end();
  const Result<Perplexity> made =
      measure_perplexity(o, job.host, *job.measured, outputs.logits ? &*outputs.logits : nullptr);
  if (!made) return fail(made.error());
  print_perplexity(stdout, *made);
  return exit_code(outputs.finish(o, job.host, *made));
}

int run_render(Job& job) { return render(job.options, &job.host.session()); }

int run_embed(Job& job) {
  const Result<std::uint64_t> left_out = embed_all(job.options, job.host, inputs_of(job.options));
  if (!left_out) return fail(left_out.error());
  return *left_out == 0 ? 0 : 1;
}

int run_rerank(Job& job) {
  const Result<std::uint64_t> left_out = rerank_lines(job.options, job.host);
  if (!left_out) return fail(left_out.error());
  return *left_out == 0 ? 0 : 1;
}

int run_plan(Job&) { return 0; }

}  // namespace qsf::run
