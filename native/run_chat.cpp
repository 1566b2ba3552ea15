#include "native/run_chat.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "native/run_input.h"
#include "native/run_output.h"
#include "native/run_report.h"
#include "native/run_signal.h"
#include "native/run_terminal.h"
#include "qsf/base/try.h"

namespace qsf::run {
namespace {

constexpr std::string_view kHelp =
    "/undo forgets the last message and its answer, /reset all of them; Ctrl-C ends an "
    "answer, Ctrl-D the conversation";

class Conversation {
 public:
  Conversation(const Options& options, Host& host, const Chat& chat, const Prompt& prompt)
      : o_(options), host_(host), chat_(chat), prompt_(prompt) {
    if (o_.system_prompt) turns_.push_back({ChatRole::system, *o_.system_prompt});
    n_first_ = turns_.size();
    prompt_.end_tokens = chat_.end_tokens();
  }

  /// Whether the template takes what comes before the first message.
  Status begin() const {
    QSF_TRY(ids_with("x"));
    return {};
  }

  /// False where the line is no command.
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
    QSF_LET(rest, feed_on(host_.session(), ids));
    prompt_.tokens = rest;
    QSF_LET(made, generate(host_, prompt_, {speaker(host_.session(), chat_), nullptr}));
    turns_.push_back({ChatRole::user, line});
    turns_.push_back(
        {ChatRole::assistant, std::string(chat_.remembered(host_.session(), made.generated_ids, made.text))});
    return made;
  }

 private:
  struct Turn {
    ChatRole role;
    std::string content;
  };

  static bool is_word(std::string_view line) {
    return line.size() > 1 && line.front() == '/' &&
           std::ranges::all_of(line.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
  }

  Result<std::vector<std::uint32_t>> ids_with(std::string_view line) const {
    std::vector<ChatMessage> messages;
    for (const Turn& turn : turns_) messages.push_back({turn.role, turn.content});
    messages.push_back({ChatRole::user, line});
    return chat_.tokenize(host_.session(), messages);
  }

  const Options& o_;
  Host& host_;
  const Chat& chat_;
  Prompt prompt_;
  std::vector<Turn> turns_;
  std::size_t n_first_ = 0;  // turns that no command takes away
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

int fail(const Error& error) {
  tell(error);
  return error.code == ErrorCode::cancelled ? exit_code_of(caught_signal()) : 1;
}

}  // namespace

Result<std::vector<std::uint32_t>> ask(const Options& options, Host& host, const Chat& chat) {
  const std::array<ChatMessage, 2> messages{ChatMessage{ChatRole::system, *options.system_prompt},
                                            ChatMessage{ChatRole::user, *options.prompt}};
  return chat.tokenize(host.session(), messages);
}

std::function<Status(std::string_view)> speaker(Session& session, const Chat& chat) {
  return [&session, &chat, thinks = false](std::string_view piece) mutable -> Status {
    const Speech speech = chat.speech(session.tokens());
    if (speech == Speech::thought) {
      think(piece);
      thinks = true;
      return {};
    }
    if (speech == Speech::header) return {};
    if (std::exchange(thinks, false)) think("\n\n");
    return show(piece);
  };
}

int converse(const Options& o, Host& host, Prompt prompt) {
  Session& session = host.session();
  const Result<Chat> chat = Chat::open(session);
  if (!chat) return fail(chat.error());
  std::vector<std::string_view> stops(prompt.stops.begin(), prompt.stops.end());
  if (!chat->stop().empty()) stops.push_back(chat->stop());
  prompt.stops = stops;
  Conversation talk(o, host, *chat, prompt);
  if (const Status begun = talk.begin(); !begun) return fail(begun.error());
  Lines lines(longest_text(session));
  std::string line;
  while (true) {
    const Lines::Kind kind = lines.next(line);
    if (cancelled()) {
      if (caught_signal() != SIGINT || interrupts() > 1) break;
      cancelled() = false;
      note("Ctrl-C once more ends the conversation");
      continue;
    }
    if (kind == Lines::Kind::end) break;
    forget_interrupts();
    if (kind == Lines::Kind::too_long) {
      tell_left_out(make_error(ErrorCode::context_full, "the line is longer than the context can hold"));
      continue;
    }
    if (line.empty() || talk.command(line)) continue;
    const Result<Generation> made = talk.answer(line);
    if (!made && !is_of_a_line(made.error().code)) return fail(made.error());
    if (!made) {
      tell_left_out(made.error());
      continue;
    }
    if (const Status shown = show("\n"); !shown) return fail(shown.error());
    note_end(o, *made, session.stats().max_seq_len);
    if (o.verbose) print_speed(stderr, *made, host);
    if (cancelled() && (caught_signal() != SIGINT || interrupts() > 1)) break;
    cancelled() = false;  // the first Ctrl-C ends an answer
  }
  return cancelled() ? exit_code_of(caught_signal()) : 0;
}

}  // namespace qsf::run
