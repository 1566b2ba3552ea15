#include "native/run_signal.h"

#include <signal.h>

namespace qsf::run {
namespace {

std::atomic<bool> flag{false};
std::atomic<int> caught{0};

}  // namespace

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int signal) {
    caught = signal;
    flag = true;
  };  // no SA_RESTART: a read() or write() that waits ends too
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

std::atomic<bool>& cancelled() { return flag; }

int caught_signal() { return caught; }

int exit_code_of(int signal) { return 128 + (signal == 0 ? SIGINT : signal); }

}  // namespace qsf::run
