#include "native/cli/terminal.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "native/sources/address.h"
#include "qsf/base/utf8.h"
#include "system/program.h"

namespace qsf::run {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBeforeProgress{1500};

Color wanted = Color::automatic;

bool has_color() {
  static const bool terminal = sys::is_terminal(sys::kError) && std::getenv("NO_COLOR") == nullptr;
  return wanted == Color::always || (wanted == Color::automatic && terminal);
}

/// Returns the text in the colour with this number (ECMA-48).
std::string colored(std::string_view text, int color) {
  if (!has_color()) return std::string(text);
  return "\033[" + std::to_string(color) + "m" + std::string(text) + "\033[0m";
}

void write_line(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

}  // namespace

void use_color(Color color) { wanted = color; }

std::string printable(std::string_view text, bool lines) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded next = utf8::decode(text, at);
    const bool kept = lines && (next.code == '\n' || next.code == '\t');
    const bool control = next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0);
    if (next.form != utf8::Form::valid || (control && !kept)) {
      out += '?';
    } else {
      out += text.substr(at, next.size);
    }
    at += next.size;
  }
  return out;
}

void tell(const Error& error) { tell(error.code, error.sentence); }

void tell(ErrorCode code, std::string_view sentence) {
  write_line(colored("qsf-run: " + std::string(error_name(code)) + ":", 31) + " " +
             printable(sentence_without_secrets(sentence)));
}

void think(std::string_view text) {
  constexpr int kFaint = 2;
  std::fputs(colored(printable(text, true), kFaint).c_str(), stderr);
}

void note(std::string_view sentence) {
  write_line(colored("qsf-run:", 33) + " " + printable(sentence_without_secrets(sentence)));
}

std::string input_mark(std::string_view mark) { return colored(mark, 32) + " "; }

void show_input_mark(std::string_view mark) { std::fputs(colored(std::string(mark) + " ", 32).c_str(), stderr); }

void StatusLine::show(std::string_view text) {
  static const bool terminal = sys::is_terminal(sys::kError);
  if (!terminal) return;
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", printable(text).c_str());
}

void StatusLine::clear() {
  if (std::exchange(shown_, false)) std::fputs("\r\033[K", stderr);
}

Progress::Progress(const std::string& model, const std::atomic<std::uint64_t>& received, bool verbose)
    : model_(model), received_(received), verbose_(verbose) {
  if (verbose_ || sys::is_terminal(sys::kError)) (void)thread_.start<&Progress::run>(this);
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::run() {
  const bool terminal = sys::is_terminal(sys::kError);
  std::unique_lock lock(mutex_);
  StatusLine shown;
  milliseconds wait = kBeforeProgress;
  while (!ended_.wait_for(lock, wait, [&] { return end_; })) {
    char bytes[32];
    std::snprintf(bytes, sizeof bytes, "%.1f", static_cast<double>(received_.load()) / (1 << 20));
    const std::string line = "reading " + without_secrets(model_) + ": " + bytes + " MiB so far";
    if (terminal) {
      shown.show(line);
    } else {
      note(line);
    }
    wait = milliseconds(terminal ? 250 : 10'000);
  }
}

}  // namespace qsf::run
