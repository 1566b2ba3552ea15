#include "native/run_terminal.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>

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

/// In the colour with this number (ECMA-48).
std::string colored(std::string_view text, int color) {
  if (!has_color()) return std::string(text);
  return "\033[" + std::to_string(color) + "m" + std::string(text) + "\033[0m";
}

void write_line(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

}  // namespace

void use_color(Color color) { wanted = color; }

std::string printable(std::string_view text, bool lines) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
    if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
      out += '?';
      ++i;
    } else if ((c < 0x20 && !(lines && (c == '\n' || c == '\t'))) || c == 0x7f) {
      out += '?';
    } else {
      out += text[i];
    }
  }
  return out;
}

void tell(const Error& error) {
  write_line(colored("qsf-run: " + std::string(error_name(error.code)) + ":", 31) + " " + printable(error.sentence));
}

void think(std::string_view text) {
  constexpr int kFaint = 2;
  std::fputs(colored(printable(text, true), kFaint).c_str(), stderr);
}

void note(std::string_view sentence) { write_line(colored("qsf-run:", 33) + " " + printable(sentence)); }

void show_input_mark() { std::fputs(colored("> ", 32).c_str(), stderr); }

Progress::Progress(const std::string& model, const std::atomic<std::uint64_t>& received)
    : model_(model), received_(received) {
  thread_ = std::thread([this] { run(); });
}

void Progress::end() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Progress::run() {
  const bool terminal = sys::is_terminal(sys::kError);
  std::unique_lock lock(mutex_);
  bool told = false;
  milliseconds wait = kBeforeProgress;
  while (!ended_.wait_for(lock, wait, [&] { return end_; })) {
    char bytes[32];
    std::snprintf(bytes, sizeof bytes, "%.1f", static_cast<double>(received_.load()) / (1 << 20));
    const std::string line = "reading " + printable(model_) + ": " + bytes + " MiB so far";
    if (terminal) {
      std::fprintf(stderr, "\r\033[K%s", line.c_str());
    } else {
      note(line);
    }
    told = true;
    wait = milliseconds(terminal ? 250 : 10'000);
  }
  if (told && terminal) std::fputs("\r\033[K", stderr);
}

}  // namespace qsf::run
