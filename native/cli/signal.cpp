#include "native/cli/signal.h"

#include <csignal>

#include "system/program.h"

namespace qsf::run {
namespace {

std::atomic<bool> flag{false};
std::atomic<int> caught{0}, n_interrupts{0};
std::atomic<void (*)()> first{nullptr};

}  // namespace

void catch_signals() {
  constexpr bool kResume = false;  // a read() or write() that waits ends too
  sys::catch_stops(
      [](int signal) {
        if (void (*const action)() = first) action();
        caught = signal;
        if (signal == SIGINT) n_interrupts = n_interrupts + 1;
        flag = true;
      },
      kResume);
}

void when_stopped(void (*action)()) { first = action; }

const std::atomic<bool>& cancelled() { return flag; }

int caught_signal() { return caught; }

int interrupts() { return n_interrupts; }

void forget_interrupts() { n_interrupts = 0; }

void go_on() {
  flag = false;
  sys::take_stop();
}

int exit_code_of(int signal) { return sys::exit_code_of(signal == 0 ? SIGINT : signal); }

}  // namespace qsf::run
