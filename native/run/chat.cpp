#include "native/run/chat.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "native/cli/input.h"
#include "native/cli/messages.h"
#include "native/cli/signal.h"
#include "native/cli/terminal.h"
#include "native/run/accepts.h"
#include "native/run/answer.h"
#include "native/run/attachments.h"
#include "native/run/output.h"
#include "native/run/report.h"
#include "native/run/turns.h"
#include "qsf/base/try.h"

namespace qsf::run {
static_assert(kUnlimitedThoughts == chat::Guide::kUnlimited);
namespace {

constexpr std::size_t kLongestTools = 1 << 20;     // bytes
constexpr std::size_t kLongestTemplate = 1 << 20;  // bytes
constexpr std::string_view kFile = "/file";
constexpr std::string_view kHelp =
    "/file PATH puts a text file into the next message; /undo forgets the last message and its answer, /reset all of "
    "them; Ctrl-C ends an answer, Ctrl-D, /exit or /quit "
    "the conversation; a message of several lines is pasted, begins and ends with \"\"\", or has lines that end in \\";

class Conversation {
 public:
  Conversation(const Options& options, Host& host, const Chat& chat, const Prompt& prompt, const Extras& extras,
               std::vector<Turn>& turns)
      : o_(options),
        host_(host),
        chat_(chat),
        prompt_(prompt),
        extras_(extras),
        turns_(turns),
        files_(longest_text(host.session())) {
    prompt_.anew = true;
    prompt_.end_tokens = chat_.answers().end_tokens();
  }

  /// Fails if --system-prompt is not that of the turns, if the template refuses them before another message, or if a
  /// file of --file cannot be taken.
  Status begin() {
    QSF_TRY(begin_turns(o_, turns_));
    for (const std::string& path : o_.files) QSF_TRY(files_.add(path));
    while (n_first_ < turns_.size() && turns_[n_first_].role == kSystem) ++n_first_;
    n_calls_ = count_calls(turns_);
    while (!add_line(turns_, "x", asked_).empty()) continue;
    const Result<Question> asking = question();
    asked_.clear();
    if (!asking && asking.error().code != ErrorCode::context_full) return asking.error();  // /undo makes room
    note_result(last_calls(turns_));
    return {};
  }

  /// Runs a command. Returns false if the line is not a command.
  bool command(std::string_view line) {
    if (line == "/help") {
      note(kHelp);
    } else if (line == kFile || line.starts_with(std::string(kFile) + ' ')) {
      attach(line.substr(kFile.size()));
    } else if (line == "/reset") {
      forget(n_first_);
      note("the conversation begins anew");
    } else if (line == "/undo" && !files_.empty()) {
      files_.clear();
      note("the files before the next message are forgotten");
    } else if (line == "/undo" && turns_.size() == n_first_) {
      note("there is nothing to undo");
    } else if (line == "/undo") {
      std::size_t n = turns_.size() - 1;  // the answer and its question
      while (n > n_first_ && turns_[n - 1].role != kAssistant) --n;
      forget(n);
      note("the last message and its answer are forgotten");
    } else if (is_word(line)) {
      tell(make_error(ErrorCode::bad_argument, "there is no command {:.60}: {}", line, kHelp));
    } else {
      return false;
    }
    return true;
  }

  /// Takes a line as a message, or as the result of a call of the last answer. Returns whether an answer can follow.
  bool take(const std::string& line) {
    const std::vector<ToolCall> open = add_line(turns_, files_.before(line), asked_);
    note_result(open);
    return open.empty();
  }

  Result<Generation> answer() {
    const std::vector<Turn> asked = asked_;
    Result<Question> asking = question();
    asked_.clear();
    if (!asking) return asking.error();
    prompt_.tokens = asking->ids;
    Answer answer(o_, n_calls_);
    Sinks sinks;
    sinks.parts = &asking->parts;
    sinks.part = [&answer](const chat::Part& part) { return answer.add(part); };
    QSF_LET(made, generate(host_, prompt_, sinks, extras_));
    QSF_TRY(answer.end());
    turns_.insert(turns_.end(), asked.begin(), asked.end());
    add_answer(answer, turns_);
    n_calls_ += answer.calls().size();
    note_result(answer.calls());
    return made;
  }

 private:
  static bool is_word(std::string_view line) {
    return line.size() > 1 && line.front() == '/' &&
           std::ranges::all_of(line.substr(1), [](char c) { return c >= 'a' && c <= 'z'; });
  }
  /// Asks for the result of the first call, if there is one.
  static void note_result(std::span<const ToolCall> calls) {
    if (calls.empty()) return;
    note(make_error(ErrorCode::none, "the next message is the result of {:.60}; /undo forgets the call",
                    calls.front().name)
             .sentence);
  }

  void attach(std::string_view path) {
    while (path.starts_with(' ')) path.remove_prefix(1);
    while (path.ends_with(' ')) path.remove_suffix(1);
    if (path.empty()) {
      return tell(make_error(ErrorCode::bad_argument, "{} needs the path of a text file: {} PATH", kFile, kFile));
    }
    const Result<std::string> name = files_.add(std::string(path));
    if (!name) return tell(make_error(name.error().code, "{}; the file is left out", name.error().sentence));
    note(make_error(ErrorCode::none, "{:.300} is put into the next message; /undo forgets its files", *name).sentence);
  }

  void forget(std::size_t n) {
    turns_.resize(n);
    asked_.clear();
    files_.clear();
  }

  /// Asks for an answer to the request after the turns.
  Result<Question> question() const { return chat_.ask(host_.session(), messages_of(turns_, asked_), prompt_.stops); }

  const Options& o_;
  Host& host_;
  const Chat& chat_;
  Prompt prompt_;
  Extras extras_;
  std::vector<Turn>& turns_;
  Attachments files_;        // of the next message
  std::vector<Turn> asked_;  // a message, or results of calls, that no answer follows yet
  std::size_t n_first_ = 0;  // turns that no command removes
  std::size_t n_calls_ = 0;  // so far
};

void note_end(const Options& o, const Generation& made, std::uint32_t max_seq_len) {
  if (made.ended == End::context) {
    note(
        make_error(ErrorCode::context_full, "the context of {} tokens is full: /undo or /reset makes room", max_seq_len)
            .sentence);
  } else if (made.ended == End::length) {
    note(cut_sentence("answer", o.max_tokens));
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

Result<std::string> read_tools(const Options& options) {
  if (options.tools_file.empty()) return std::string();
  constexpr std::string_view kList =
      "a JSON list of tools, such as [{\"type\": \"function\", \"function\": {\"name\": ...}}]";
  QSF_LET(tools, read_json(options.tools_file, kLongestTools, "--tools", kList));
  const auto is_tool = [](const Json& tool) {
    const Json& function = tool.contains("function") ? tool["function"] : tool;
    return function.is_object() && function.contains("name") && function["name"].is_string();
  };
  if (!tools.is_array() || !std::ranges::all_of(tools, is_tool)) {
    return make_error(ErrorCode::bad_input, "{} is not {}", options.tools_file, kList);
  }
  return tools.dump();
}

Result<std::vector<chat::Guide>> open_guides(const Options& options, Session& session) {
  std::vector<chat::Guide> guides;
  const bool holds = options.has_grammar() || !options.tool_choice.empty();
  if (!holds && !options.limits_thoughts()) return guides;
  const std::span<std::byte> memory = session.text_memory();
  const std::uint32_t n = options.answers;
  QSF_LET(built, holds ? chat::Guide::build(session, memory, n) : chat::Guide::build_for_thoughts(session, memory, n));
  if (built.shares() < n) {
    return make_error(ErrorCode::out_of_memory,
                      "the memory for texts has room for {} held texts at once, and --answers is {}: see --text-bytes",
                      built.shares(), n);
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    guides.push_back(built.in_share(i));
    guides.back().limit_thoughts(options.reasoning_budget);
  }
  if (!options.has_grammar()) return guides;
  QSF_LET(grammar, read_grammar(options));
  for (chat::Guide& guide : guides) QSF_TRY(guide.set(grammar.view()));
  return guides;
}

Result<Chat> open_chat(const Options& options, Session& session, std::span<chat::Guide> guides) {
  QSF_LET(text, read_template(options));
  QSF_LET(tools, read_tools(options));
  const std::span<std::byte> memory = guides.empty() ? session.text_memory() : guides.front().free();
  QSF_LET(chat, Chat::open(session, {std::move(text), arguments_of(options).dump(), std::move(tools)}, memory,
                           options.answers));
  if (options.tool_choice.empty()) return std::move(chat);
  const std::string_view choice = options.tool_choice;
  const bool is_word = choice == "auto" || choice == "required";
  for (chat::Guide& guide : guides) {
    QSF_TRY(chat.hold_calls(guide, {.required = choice != "auto", .only = is_word ? std::string_view() : choice}));
  }
  return std::move(chat);
}

Status add_request(const Options& options, std::size_t most_bytes, std::vector<Turn>& turns) {
  QSF_TRY(begin_turns(options, turns));
  Attachments files(most_bytes);
  for (const std::string& path : options.files) QSF_TRY(files.add(path));
  std::vector<Turn> asked;
  if (const std::size_t open = add_line(turns, files.before(*options.prompt), asked).size(); open != 0) {
    return make_error(ErrorCode::bad_argument,
                      "the last answer of --session has {} calls, and --message gives the result of one: --chat takes "
                      "all of them",
                      open + 1);
  }
  turns.insert(turns.end(), asked.begin(), asked.end());
  return {};
}

int converse(const Options& o, Host& host, Prompt prompt, const Extras& extras, std::vector<Turn>& turns) {
  Session& session = host.session();
  const bool holds = extras.guide != nullptr;
  const Result<Chat> chat = open_chat(o, session, {extras.guide, holds ? 1u : 0u});
  if (!chat) return fail(chat.error());
  std::vector<std::string_view> stops(prompt.stops.begin(), prompt.stops.end());
  if (!chat->answers().stop().empty()) stops.push_back(chat->answers().stop());
  prompt.stops = stops;
  Conversation talk(o, host, *chat, prompt, extras, turns);
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
    if (line.empty() || talk.command(line) || !talk.take(line)) continue;
    const Result<Generation> made = talk.answer();
    if (!made && made.error().code != ErrorCode::cancelled) {
      if (!is_of_a_line(made.error().code)) return fail(made.error());
      tell_left_out(made.error());
      continue;
    }
    if (!made) (void)show("\n");
    if (made) note_end(o, *made, session.stats().max_seq_len);
    if (made && o.verbose) print_speed(stderr, std::span(&*made, 1), host);
    if (cancelled() && (caught_signal() != SIGINT || interrupts() > 1)) break;
    go_on();  // the first Ctrl-C ends an answer
  }
  return cancelled() ? exit_code_of(caught_signal()) : 0;
}

}  // namespace qsf::run
