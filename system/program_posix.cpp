#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "system/program.h"

namespace qsf::sys {
namespace {

constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kErrors{SIGPIPE, SIGXFSZ};
std::array<struct sigaction, kStops.size() + kErrors.size()> before{};

}  // namespace

const bool kCarriageReturns = false;

int run_program(int argc, char** argv, int (*body)(int argc, char** argv)) { return body(argc, argv); }

void hold_standard_files() {
  for (const int file : {kInput, kOutput, kError}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // Opened for the wrong direction, so that using it fails; what cannot be told anywhere goes nowhere.
    (void)::open("/dev/null", file == kOutput ? O_RDONLY : O_WRONLY);
  }
}

bool is_terminal(int file) { return ::isatty(file) != 0; }

bool wait_readable(int file, int milliseconds) {
  pollfd ready{file, POLLIN, 0};
  return ::poll(&ready, 1, milliseconds) != 0;
}

std::ptrdiff_t read_some(int file, std::span<char> into) { return ::read(file, into.data(), into.size()); }

std::tm local_time(std::time_t time) {
  std::tm local{};
  ::localtime_r(&time, &local);
  return local;
}

void catch_stops(void (*caught)(int signal), bool resume) {
  struct sigaction action{};
  action.sa_handler = caught;
  action.sa_flags = resume ? SA_RESTART : 0;
  std::size_t i = 0;
  for (const int signal : kStops) {
    const bool known = ::sigaction(signal, nullptr, &before[i]) == 0;
    if (!known || before[i].sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // what nohup set stays
    ++i;
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : kErrors) ::sigaction(signal, &action, &before[i++]);
}

void release_stops() {
  std::size_t i = 0;
  for (const int signal : kStops) ::sigaction(signal, &before[i++], nullptr);
  for (const int signal : kErrors) ::sigaction(signal, &before[i++], nullptr);
}

}  // namespace qsf::sys
