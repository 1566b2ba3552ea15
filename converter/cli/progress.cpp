#include "converter/cli/progress.h"

#include <cmath>
#include <cstdio>

#include "converter/cli/table.h"
#include "system/program.h"

namespace qsf::convert {

namespace {

constexpr std::chrono::seconds kBetweenLines{5};
constexpr double kSure = 2;  // seconds before the remaining time is shown

/// Returns a text such as ", 1 min 20 s left".
std::string time_left(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  const std::string minutes = whole >= 60 ? std::to_string(whole / 60) + " min " : std::string();
  return ", " + minutes + std::to_string(whole % 60) + " s left";
}

}  // namespace

Progress::Progress(bool quiet)
    : quiet_(quiet),
      terminal_(sys::is_terminal(sys::kError)),
      next_(std::chrono::steady_clock::now() + kBetweenLines) {}

void Progress::update(std::string_view what, std::uint64_t done, std::uint64_t total, bool bytes) {
  if (quiet_ || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (what != what_) {
    what_ = what;
    begin_ = now;
    shown_ = -1;
  }
  const int percent = static_cast<int>(static_cast<double>(done) * 100 / static_cast<double>(total));
  if (percent == shown_) return;
  if (!terminal_) {
    if (now < next_) return;
    next_ = now + kBetweenLines;
  }
  shown_ = percent;
  const double passed = std::chrono::duration<double>(now - begin_).count();
  std::string rest;
  if (bytes) {
    rest = "  " + human_bytes(static_cast<double>(done)) + " of " + human_bytes(static_cast<double>(total));
  }
  if (passed >= kSure && done > 0) {
    rest += time_left(passed * static_cast<double>(total - done) / static_cast<double>(done));
  }
  std::fprintf(stderr, terminal_ ? "\r%s %3d%%%s \033[K" : "%s %3d%%%s\n", what_.c_str(), percent, rest.c_str());
}

void Progress::finish() {
  if (!quiet_ && terminal_ && shown_ >= 0) std::fprintf(stderr, "\r\033[K");
}

}  // namespace qsf::convert
