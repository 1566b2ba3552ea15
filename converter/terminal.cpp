#include "converter/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

namespace qsf::convert {
namespace {

volatile std::sig_atomic_t last_signal = 0;

constexpr std::array kNoted{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kIgnored{SIGPIPE, SIGXFSZ};
std::array<struct sigaction, kNoted.size() + kIgnored.size()> before{};

}  // namespace

std::string printable(std::string_view text) {
  std::string out(text.size() + 1, '\0');
  out.resize(format_into(std::span<char>(out), "{}", text));
  return out;
}

void keep_standard_descriptors() {
  constexpr std::array kModes{O_WRONLY, O_RDONLY, O_WRONLY};  // the wrong way for input and output
  for (int fd = 0; fd < static_cast<int>(kModes.size()); ++fd) {
    if (fcntl(fd, F_GETFD) != -1) continue;
    if (open("/dev/null", kModes[static_cast<std::size_t>(fd)]) < 0) return;  // the lowest free number, so this one
  }
}

Status finish_stdout() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return make_error(ErrorCode::io_error, "cannot write to the standard output: {}",
                    errno != 0 ? std::strerror(errno) : "some of it was lost");
}

StopSignals::StopSignals() {
  last_signal = 0;
  std::size_t i = 0;
  for (const int number : kNoted) {
    struct sigaction action{};
    action.sa_handler = [](int caught) { last_signal = caught; };
    action.sa_flags = SA_RESTART;
    sigaction(number, nullptr, &before[i]);
    if (before[i++].sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  for (const int number : kIgnored) {
    struct sigaction action{};
    action.sa_handler = SIG_IGN;
    sigaction(number, &action, &before[i++]);
  }
}

StopSignals::~StopSignals() {
  std::size_t i = 0;
  for (const int number : kNoted) sigaction(number, &before[i++], nullptr);
  for (const int number : kIgnored) sigaction(number, &before[i++], nullptr);
}

int StopSignals::caught() const { return last_signal; }

}  // namespace qsf::convert
