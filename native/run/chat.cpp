#include "native/run/chat.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "native/cli/input.h"
#include "native/cli/messages.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/run/output.h"
#include "native/run/report.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr std::string_view kSystem = "system", kUser = "user", kAssistant = "assistant";
constexpr std::size_t kLongestTemplate = 1 << 20;  // bytes
constexpr std::string_view kHelp =
    "/undo forgets the last message and its answer, /reset all of them; Ctrl-C ends an answer, Ctrl-D, /exit or /quit "
    "the conversation; a message of several lines is pasted, begins and ends with \"\"\", or has lines that end in \\";

class Conversation {
 public:
  Conversation(const Options& options, Host& host, const Chat& chat, const Prompt& prompt, chat::Guide* guide)
      : o_(options), host_(host), chat_(chat), prompt_(prompt), guide_(guide) {
    if (o_.system_prompt) turns_.push_back({kSystem, *o_.system_prompt});
    n_first_ = turns_.size();
    prompt_.end_tokens = chat_.answers().end_tokens();
  }

  /// Fails if the template refuses the turns before the first message.
  Status begin() const {
    QSF_TRY(ids_with("x"));
    return {};
  }

  /// Runs a command. Returns false if the line is not a command.
  bool command(std::string_view line) {
    if (line == "/help") {
      note(kHelp);
    } else if (line == "/reset") {
      turns_.resize(n_first_);
      note("the conversation begins anew");
    } else if (line == "/undo" && turns_.size() == n_first_) {
      note("there is nothing to undo");
    } else if (line == "/undo") {
      turns_.resize(turns_.size() - 2);
      note("the last message and its answer are forgotten");
    } else if (is_word(line)) {
      tell(make_error(ErrorCode::bad_argument, "there is no command {:.60}: {}", line, kHelp));
    } else {
      return false;
    }
    return true;
  }

  Result<Generation> answer(const std::string& line) {
    QSF_LET(ids, ids_with(line));
    QSF_LET(rest, chat::feed_on(host_.session(), ids));
    prompt_.tokens = rest;
    QSF_LET(made, generate(host_, prompt_, {speaker(host_.session(), chat_.answers()), nullptr}, guide_));
    turns_.push_back({kUser, line});
    turns_.push_back(
        {kAssistant, std::string(chat_.answers().remembered(host_.session(), made.generated_ids, made.text))});
    return made;
  }

 private:
  struct Turn {
    std::string_view role;
    std::string content;
  };

  static bool is_word(std::string_view line) {
    return line.size() > 1 && line.front() == '/' &&
           std::ranges::all_of(line.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
  }

  Result<std::vector<std::uint32_t>> ids_with(std::string_view line) const {
    std::vector<ChatMessage> messages;
    for (const Turn& turn : turns_) messages.push_back({turn.role, turn.content});
    messages.push_back({kUser, line});
    return chat_.tokenize(host_.session(), messages);
  }

  const Options& o_;
  Host& host_;
  const Chat& chat_;
  Prompt prompt_;
  chat::Guide* guide_;
  std::vector<Turn> turns_;
  std::size_t n_first_ = 0;  // turns that no command removes
};

void note_end(const Options& o, const Generation& made, std::uint32_t max_seq_len) {
  if (made.ended == end_name(End::context)) {
    note(
        make_error(ErrorCode::context_full, "the context of {} tokens is full: /undo or /reset makes room", max_seq_len)
            .sentence);
  } else if (made.ended == end_name(End::length)) {
    note(make_error(ErrorCode::none, "the answer was cut after {} tokens (see --max-tokens)", o.max_tokens).sentence);
  }
}

void tell_left_out(const Error& error) {
  const char* advice = error.code == ErrorCode::context_full ? "; /undo or /reset makes room" : "";
  tell(make_error(error.code, "{}; the message is left out{}", error.sentence, advice));
}

}  // namespace

Result<std::string> read_template(const Options& options) {
  if (options.template_file.empty()) return std::string();
  QSF_LET(text, read_text(options.template_file, kLongestTemplate, "--chat-template"));
  return std::move(text) + '\n';  // templates lose their last line feed
}

Json arguments_of(const Options& options) {
  Json out = Json::object();
  for (const std::string& argument : options.template_arguments) {
    const std::size_t at = argument.find('=');
    const std::string value = argument.substr(at + 1);
    Json read = Json::parse(value, nullptr, false);
    out[argument.substr(0, at)] = read.is_discarded() ? Json(value) : std::move(read);
  }
  return out;
}

Result<Chat> open_chat(const Options& options, Session& session, const chat::Guide* guide) {
  QSF_LET(text, read_template(options));
  const std::span<std::byte> memory = guide != nullptr ? guide->free() : session.text_memory();
  return Chat::open(session, {std::move(text), arguments_of(options).dump()}, memory);
}

Result<std::vector<std::uint32_t>> ask(const Options& options, Host& host, const Chat& chat) {
  std::vector<ChatMessage> messages;
  if (options.system_prompt) messages.push_back({kSystem, *options.system_prompt});
  messages.push_back({kUser, *options.prompt});
  return chat.tokenize(host.session(), messages);
}

std::function<Status(std::string_view)> speaker(const Session& session, const chat::AnswerForm& form) {
  return [&session, &form, thinks = false](std::string_view piece) mutable -> Status {
    const chat::Speech speech = form.speech(session.tokens());
    if (speech == chat::Speech::thought) {
      think(piece);
      thinks = true;
      return {};
    }
    if (speech == chat::Speech::header) return {};
    if (std::exchange(thinks, false)) think("\n\n");
    return show(piece);
  };
}

int converse(const Options& o, Host& host, Prompt prompt, chat::Guide* guide) {
  Session& session = host.session();
  const Result<Chat> chat = open_chat(o, session, guide);
  if (!chat) return fail(chat.error());
  std::vector<std::string_view> stops(prompt.stops.begin(), prompt.stops.end());
  if (!chat->answers().stop().empty()) stops.push_back(chat->answers().stop());
  prompt.stops = stops;
  Conversation talk(o, host, *chat, prompt, guide);
  if (const Status begun = talk.begin(); !begun) return fail(begun.error());
  Messages messages(longest_text(session));
  std::string line;
  while (true) {
    const LineKind kind = messages.next(line);
    if (cancelled()) {
      if (caught_signal() != SIGINT || interrupts() > 1) break;
      go_on();
      note("Ctrl-C once more ends the conversation");
      continue;
    }
    if (kind == LineKind::end || asks_to_end(line)) break;
    forget_interrupts();
    if (kind == LineKind::too_long) {
      tell_left_out(make_error(ErrorCode::context_full, "the line is longer than the context can hold"));
      continue;
    }
    if (line.empty() || talk.command(line)) continue;
    const Result<Generation> made = talk.answer(line);
    if (!made && made.error().code != ErrorCode::cancelled) {
      if (!is_of_a_line(made.error().code)) return fail(made.error());
      tell_left_out(made.error());
      continue;
    }
    if (const Status shown = show("\n"); !shown) return fail(shown.error());
    if (made) note_end(o, *made, session.stats().max_seq_len);
    if (made && o.verbose) print_speed(stderr, *made, host);
    if (cancelled() && (caught_signal() != SIGINT || interrupts() > 1)) break;
    go_on();  // the first Ctrl-C ends an answer
  }
  return cancelled() ? exit_code_of(caught_signal()) : 0;
}

}  // namespace qsf::run
