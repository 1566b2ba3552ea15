#include "native/io_thread.h"

#include <algorithm>
#include <optional>
#include <span>

#include "native/clock.h"

namespace qsf {

IoThread::IoThread(Session& session, Source& source) : session_(session), source_(source) {
  thread_ = std::thread([this] { run(); });
}

IoThread::~IoThread() {
  stop_ = true;
  source_.cancel();
  thread_.join();
}

void IoThread::pump() {
  const std::size_t room = source_.room();
  std::size_t n = 0;
  while (n < room) {
    const std::optional<ReadRequest> request = session_.next_request();
    if (!request) break;
    batch_[n++] = *request;
  }
  if (n == 0) return;
  if (room == kSourceDepth) idle_until_ = Clock::now();
  source_.submit(std::span(batch_).first(n));
}

void IoThread::wait(std::uint64_t seen, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, at_most, [&] { return settled() != seen; });
}

std::pair<double, double> IoThread::take_seconds() { return {reading_.exchange(0), unpacking_.exchange(0)}; }

void IoThread::run() {
  while (!stop_) {
    const Clock::time_point before = Clock::now();
    const std::size_t n = source_.reap(done_, std::chrono::hours(1));
    if (n != 0) reading_.fetch_add(seconds_since(std::max(before, idle_until_.load())));
    for (const Completion& done : std::span(done_).first(n)) {
      const Clock::time_point begin = Clock::now();
      settle(done);
      unpacking_.fetch_add(seconds_since(begin));
      news_.notify_one();
    }
  }
}

void IoThread::settle(const Completion& done) {
  if (done.status) {
    // A failed check is the session's to report: its next step() ends with that error.
    (void)session_.complete(done.ticket);
  } else {
    session_.fail(done.ticket, done.status.error());
  }
  const std::lock_guard lock(mutex_);
  settled_.fetch_add(1, std::memory_order_release);
}

bool IoThread::help() {
  Completion done;
  if (!source_.read_cached(done)) return false;
  settle(done);
  return true;
}

}  // namespace qsf
