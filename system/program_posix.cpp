#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "system/program.h"
#include "system/unfinished.h"

namespace qsf::sys {
namespace {

constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};
constexpr std::array kErrors{SIGPIPE, SIGXFSZ};
std::array<struct sigaction, kStops.size() + kErrors.size()> before{};
std::atomic<void (*)(int)> told{nullptr};
std::atomic<bool> pending{false};  // a stop before its take_stop()

void on_stop(int signal) {
  if (pending.exchange(true)) {
    each_unfinished([](const char* path) { ::unlink(path); });
    ::_exit(exit_code_of(signal));
  }
  const int error = errno;
  told.load()(signal);
  errno = error;
}

}  // namespace

int run_program(int argc, char** argv, int (*body)(int argc, char** argv)) { return body(argc, argv); }

void hold_standard_files() {
  for (const int file : {kInput, kOutput, kError}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // The file is opened for the wrong direction, so that using it fails. A failure here cannot be reported.
    (void)::open("/dev/null", file == kOutput ? O_RDONLY : O_WRONLY);
  }
}

std::FILE* open_nowhere() { return std::fopen("/dev/null", "we"); }

bool is_terminal(int file) { return ::isatty(file) != 0; }

bool wait_readable(int file, int milliseconds) {
  pollfd ready{file, POLLIN, 0};
  const int n = ::poll(&ready, 1, milliseconds);
  return n > 0 || (n < 0 && errno != EINTR);  // the read reports other errors
}

bool nobody_reads(int file) {
  pollfd pipe{file, POLLOUT, 0};
  return ::poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0;
}

std::ptrdiff_t read_some(int file, std::span<char> into) { return ::read(file, into.data(), into.size()); }

std::tm local_time(std::time_t time) {
  std::tm local{};
  ::localtime_r(&time, &local);
  return local;
}

void catch_stops(void (*caught)(int signal), bool resume) {
  told = caught;
  struct sigaction action{};
  action.sa_handler = on_stop;
  action.sa_flags = resume ? SA_RESTART : 0;
  std::size_t i = 0;
  for (const int signal : kStops) {
    const bool known = ::sigaction(signal, nullptr, &before[i]) == 0;
    if (!known || before[i].sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // keeps the setting of nohup
    ++i;
  }
  action.sa_handler = SIG_IGN;
  for (const int signal : kErrors) ::sigaction(signal, &action, &before[i++]);
}

void take_stop() { pending = false; }

void release_stops() {
  std::size_t i = 0;
  for (const int signal : kStops) ::sigaction(signal, &before[i++], nullptr);
  for (const int signal : kErrors) ::sigaction(signal, &before[i++], nullptr);
  take_stop();
}

}  // namespace qsf::sys
