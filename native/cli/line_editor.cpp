#include "native/cli/line_editor.h"

#if QSF_HAVE_LIBEDIT

#include <dlfcn.h>
#include <histedit.h>
#include <langinfo.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "native/cli/signal.h"
#include "qsf/base/utf8.h"
#include "system/file.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr int kRemembered = 100;            // messages of the history
constexpr std::size_t kLongestKept = 4096;  // characters of one of them, so that the history has a bound
constexpr std::string_view kPasteOn = "\033[?2004h", kPasteOff = "\033[?2004l", kPasteEnd = "\033[201~";
constexpr wchar_t kEscape = L'\1';  // stands before and after the parts of a prompt that have no width

/// The functions of libedit.
struct Library {
  decltype(&::el_init) init = nullptr;
  decltype(&::el_end) end = nullptr;
  decltype(&::el_wset) set = nullptr;
  decltype(&::el_wgets) gets = nullptr;
  decltype(&::el_winsertstr) insert = nullptr;
  decltype(&::el_resize) resize = nullptr;
  decltype(&::el_source) source = nullptr;
  decltype(&::history_winit) history_init = nullptr;
  decltype(&::history_w) history = nullptr;
  decltype(&::history_wend) history_end = nullptr;

  bool load() {
    void* library = nullptr;
    for (const char* name : {"libedit.so.2", "libedit.so.0", "libedit.3.dylib"}) {
      if (library == nullptr) library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    }
    const auto find = [&](const char* name, auto& to) {
      void* symbol = library == nullptr ? nullptr : ::dlsym(library, name);
      static_assert(sizeof symbol == sizeof to);
      std::memcpy(&to, &symbol, sizeof to);
      return symbol != nullptr;
    };
    return find("el_init", init) && find("el_end", end) && find("el_wset", set) && find("el_wgets", gets) &&
           find("el_winsertstr", insert) && find("el_resize", resize) && find("el_source", source) &&
           find("history_winit", history_init) && find("history_w", history) && find("history_wend", history_end);
  }
};

std::wstring wide(std::string_view text) {
  std::wstring out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded next = utf8::decode(text, at);
    out += next.form == utf8::Form::valid ? static_cast<wchar_t>(next.code) : L'\uFFFD';
    at += next.size;
  }
  return out;
}

/// Returns the mark with kEscape before and after its colours.
std::wstring prompt_of(std::string_view mark) {
  std::wstring out;
  for (const wchar_t c : wide(mark)) {
    if (c == L'\033') out += kEscape;
    out += c;
    if (c == L'm') out += kEscape;
  }
  return out;
}

void write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

/// The terminal's own settings, and whether others are in place.
termios own;
std::atomic<bool> is_changed{false};

/// Gives the terminal its own settings back. Is safe in a signal handler.
void give_back() {
  if (!is_changed.exchange(false)) return;
  ::tcsetattr(sys::kInput, TCSANOW, &own);
  if (::write(sys::kError, kPasteOff.data(), kPasteOff.size()) < 0) return;  // nobody is left to see it
}

bool can_edit() {
  const std::string terminal = sys::environment("TERM");
  return sys::is_terminal(sys::kInput) && sys::is_terminal(sys::kError) && !terminal.empty() && terminal != "dumb";
}

}  // namespace

struct LineEditor::State {
  Library edit;
  EditLine* line = nullptr;
  HistoryW* history = nullptr;
  std::wstring mark;
  std::size_t limit = 0;
  std::size_t typed = 0;  // characters since the line began
  bool dropped = false;   // whether some were left out
  char bytes[4096] = {};
  std::size_t at = 0, size = 0;  // of `bytes`

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    when_stopped(nullptr);
    if (line != nullptr) edit.end(line);
    give_back();
    if (history != nullptr) edit.history_end(history);
  }

  bool open();
  bool fill();
  int decode(wchar_t& out);
  int read(wchar_t& out);
  std::wstring read_paste();

  static inline State* current = nullptr;  // of the callbacks, which run within next()
};

bool LineEditor::State::open() {
  if (!edit.load()) return false;
  // libedit writes in the locale's encoding. Models take UTF-8 only.
  if (std::setlocale(LC_CTYPE, "") == nullptr || std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) {
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) return false;
  }
  if (::tcgetattr(sys::kInput, &own) != 0) return false;
  line = edit.init("qsf-run", stdin, stderr, stderr);
  history = edit.history_init();
  if (line == nullptr || history == nullptr) return false;
  const el_rfunc_t read_one = [](EditLine*, wchar_t* out) { return current->read(*out); };
  wchar_t* (*const prompt)(EditLine*) = [](EditLine*) { return current->mark.data(); };
  unsigned char (*const paste)(EditLine*, wint_t) = [](EditLine* into, wint_t) -> unsigned char {
    const std::wstring text = current->read_paste();
    return text.empty() || current->edit.insert(into, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  };
  HistEventW event;
  edit.history(history, &event, H_SETSIZE, kRemembered);
  edit.set(line, EL_EDITOR, L"emacs");
  edit.set(line, EL_PROMPT_ESC, prompt, kEscape);
  edit.set(line, EL_HIST, edit.history, history);
  edit.set(line, EL_GETCFN, read_one);
  edit.source(line, nullptr);  // the user's ~/.editrc
  edit.set(line, EL_ADDFN, L"qsf-paste", L"Insert a pasted text", paste);
  edit.set(line, EL_BIND, L"\033[200~", L"qsf-paste", nullptr);
  edit.set(line, EL_BIND, L"^I", L"ed-insert", nullptr);
  // What is typed between lines stays for the next one. A terminal's own lines end after 4,095 bytes.
  edit.set(line, EL_SETTY, L"-x", L"-icanon", L"-echo", nullptr);
  return true;
}

/// Reads some bytes. Returns false at the end, after a signal and after an error.
bool LineEditor::State::fill() {
  constexpr int kMilliseconds = 100;  // a signal that comes just before the wait does not end it
  at = size = 0;
  while (!cancelled()) {
    const bool readable = sys::wait_readable(sys::kInput, kMilliseconds);  // also after a signal
    if (cancelled()) break;
    if (readable) {
      const std::ptrdiff_t n = sys::read_some(sys::kInput, bytes);
      if (n > 0) size = static_cast<std::size_t>(n);
      if (n >= 0 || errno != EINTR) return n > 0;
    }
    // A shell that stopped and continued the program may have given the terminal its own settings.
    termios settings{};
    if (::tcgetattr(sys::kInput, &settings) == 0 && (settings.c_lflag & ICANON) != 0) {
      edit.set(line, EL_PREP_TERM, 1);
      edit.set(line, EL_REFRESH);
    }
  }
  return false;
}

/// Reads a character. Returns 1, 0 at the end, or -1 after a signal.
int LineEditor::State::decode(wchar_t& out) {
  std::string character;
  utf8::Decoded next{0, 1, utf8::Form::incomplete};
  while (next.form == utf8::Form::incomplete) {
    if (at == size && !fill()) return cancelled() ? -1 : 0;
    character += bytes[at++];
    next = utf8::decode(character, 0);
  }
  if (next.size < character.size()) --at;  // it ended before the last byte
  out = next.form == utf8::Form::valid ? static_cast<wchar_t>(next.code) : L'\uFFFD';
  return 1;
}

/// Reads a character for EL_GETCFN. Leaves out those beyond the limit up to the end of the line.
int LineEditor::State::read(wchar_t& out) {
  while (true) {
    if (const int outcome = decode(out); outcome != 1) return outcome;
    if (++typed <= limit || out == L'\r' || out == L'\n') return 1;
    dropped = true;
  }
}

/// Returns the text up to the mark of its end, with line feeds, and without the one at its end.
std::wstring LineEditor::State::read_paste() {
  constexpr std::size_t kAtOnce = 4096;
  const std::wstring end = wide(kPasteEnd);
  std::wstring text;
  bool returned = false;
  while (!text.ends_with(end)) {
    wchar_t c = 0;
    if (decode(c) != 1) return {};
    if (!(c == L'\n' && returned)) text += c == L'\r' ? L'\n' : c;
    returned = c == L'\r';
    if (text.size() <= limit + kAtOnce) continue;
    text.erase(0, text.size() - end.size());  // only the mark of the end matters from here on
    dropped = true;
  }
  text.resize(text.size() - end.size());
  if (text.ends_with(L'\n')) text.pop_back();
  typed += text.size();
  dropped = dropped || typed > limit;
  return dropped ? std::wstring() : text;
}

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;

std::unique_ptr<LineEditor> LineEditor::open(std::size_t limit) {
  if (!can_edit()) return nullptr;
  auto state = std::make_unique<State>();
  state->limit = limit;
  if (!state->open()) return nullptr;
  is_changed = true;
  when_stopped(give_back);
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(state)));
}

LineKind LineEditor::next(std::string_view mark, std::string& line) {
  State& s = *state_;
  State::current = &s;
  s.mark = prompt_of(mark);
  s.typed = 0;
  s.dropped = false;
  line.clear();
  s.edit.resize(s.line);  // the window may have another size
  is_changed = true;
  write(kPasteOn);
  int n = 0;
  const wchar_t* const typed = s.edit.gets(s.line, &n);
  if (cancelled()) write(kPasteOff);
  if (typed == nullptr || n <= 0) {
    write(cancelled() ? "^C\n" : "\n");
    return LineKind::end;
  }
  for (std::wstring_view left(typed, static_cast<std::size_t>(n)); !left.empty(); left.remove_prefix(1)) {
    char character[4];
    line.append(character, utf8::encode(static_cast<char32_t>(left.front()), character));
  }
  if (line.ends_with('\n')) line.pop_back();
  return s.dropped || line.size() > s.limit ? LineKind::too_long : LineKind::line;
}

void LineEditor::remember(const std::string& message) {
  const std::wstring text = wide(message);
  HistEventW event;
  if (!text.empty() && text.size() <= kLongestKept) {
    state_->edit.history(state_->history, &event, H_ENTER, text.c_str());
  }
}

}  // namespace qsf::run

#else

namespace qsf::run {

struct LineEditor::State {};

LineEditor::LineEditor(std::unique_ptr<State> state) : state_(std::move(state)) {}
LineEditor::~LineEditor() = default;
std::unique_ptr<LineEditor> LineEditor::open(std::size_t) { return nullptr; }
LineKind LineEditor::next(std::string_view, std::string&) { return LineKind::end; }
void LineEditor::remember(const std::string&) {}

}  // namespace qsf::run

#endif
