#include "native/run_signal.h"

#include <signal.h>

namespace qsf::run {
namespace {

std::atomic<bool> flag{false};
std::atomic<int> caught{0}, n_interrupts{0};

}  // namespace

void catch_signals() {
  struct sigaction action{}, before{};
  action.sa_handler = [](int signal) {
    caught = signal;
    if (signal == SIGINT) n_interrupts = n_interrupts + 1;
    flag = true;
  };  // no SA_RESTART: a read() or write() that waits ends too
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const bool ignored = ::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
    if (!ignored) ::sigaction(signal, &action, nullptr);  // what nohup set stays
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

std::atomic<bool>& cancelled() { return flag; }

int caught_signal() { return caught; }

int interrupts() { return n_interrupts; }

void forget_interrupts() { n_interrupts = 0; }

int exit_code_of(int signal) { return 128 + (signal == 0 ? SIGINT : signal); }

}  // namespace qsf::run
