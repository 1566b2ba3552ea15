#include "converter/progress.h"

#include <unistd.h>

#include <cstdio>

#include "converter/table.h"

namespace qsf::convert {

namespace {

constexpr std::chrono::seconds kBetweenLines{5};

}  // namespace

Progress::Progress(bool quiet)
    : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0), next_(std::chrono::steady_clock::now() + kBetweenLines) {}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (quiet_ || total == 0) return;
  const int percent = static_cast<int>(static_cast<double>(done) * 100 / static_cast<double>(total));
  if (percent == shown_) return;
  if (!terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + kBetweenLines;
  }
  shown_ = percent;
  std::fprintf(stderr, terminal_ ? "\rwriting %3d%%  %s of %s " : "writing %3d%%  %s of %s\n", percent,
               human_bytes(static_cast<double>(done)).c_str(), human_bytes(static_cast<double>(total)).c_str());
}

void Progress::finish() {
  if (!quiet_ && terminal_ && shown_ >= 0) std::fprintf(stderr, "\r\033[K");
}

}  // namespace qsf::convert
