#include "native/sources/io_thread.h"

#include <algorithm>
#include <optional>
#include <span>

#include "native/sources/clock.h"
#include "system/cores.h"

namespace qsf {
namespace {

constexpr int kSpins = 2000;  // about ten microseconds, like copying a part

}  // namespace

IoThread::IoThread(Session& session, Source& source, ThreadPool& pool, bool helped)
    : session_(session), source_(source), pool_(pool), helped_(helped) {
  if (helped) pool.lend([](void* io) { return static_cast<IoThread*>(io)->help(); }, this);
  (void)thread_.start<&IoThread::run>(this);
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
  if (helped_ && source_.at_hand() != 0) pool_.call();
}

void IoThread::wait(std::uint64_t seen, std::chrono::milliseconds at_most) {
  if (!thread_.started()) return take_read(at_most);
  // The work of other threads takes less time than falling asleep and being woken.
  for (int i = 0; i < kSpins && helping_.load(std::memory_order_relaxed) != 0; ++i) {
    if (news() != seen) return;
    relax();
  }
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, at_most, [&] { return news() != seen; });
}

std::pair<double, double> IoThread::take_seconds() { return {reading_.exchange(0), unpacking_.exchange(0)}; }

void IoThread::run() {
  raise_reading_thread();
  while (!stop_) take_read(std::chrono::hours(1));
}

void IoThread::take_read(std::chrono::milliseconds at_most) {
  const Clock::time_point before = Clock::now();
  const std::size_t n = source_.reap(done_, at_most);
  if (n != 0) reading_.fetch_add(seconds_since(std::max(before, idle_until_.load())));
  for (const Completion& done : std::span(done_).first(n)) {
    std::unique_lock lock(mutex_);
    const bool room = arrived_.size() < kArrived;
    if (room) arrived_.push(done);
    lock.unlock();
    if (!room) settle(done);
  }
  if (helped_ && n != 0) {
    tell();
    pool_.call();
  } else {
    while (settle_arrived()) {
    }
  }
}

bool IoThread::settle_arrived() {
  std::unique_lock lock(mutex_);
  if (arrived_.empty()) return false;
  const Completion done = arrived_.front();
  arrived_.pop();
  lock.unlock();
  settle(done);
  return true;
}

void IoThread::tell() {
  {
    const std::lock_guard lock(mutex_);
    n_news_.fetch_add(1, std::memory_order_release);
  }
  news_.notify_one();
}

void IoThread::settle(const Completion& arrived) {
  const Clock::time_point begin = Clock::now();
  Completion done = arrived;
  if (!source_.finish(done)) {
    unpacking_.fetch_add(seconds_since(begin));
    if (source_.at_hand() != 0) pool_.call();
    return;
  }
  if (done.status) {
    // The session reports a failed check: its next step() ends with that error.
    (void)session_.complete(done.ticket);
  } else {
    session_.fail(done.ticket, done.status.error());
  }
  unpacking_.fetch_add(seconds_since(begin));
  tell();
}

bool IoThread::help() {
  helping_.fetch_add(1, std::memory_order_relaxed);
  bool helped = settle_arrived();
  if (!helped) {
    Completion done;
    const Helped reading = source_.read_cached(done);
    if (reading == Helped::last) settle(done);
    helped = reading != Helped::nothing;
  }
  helping_.fetch_sub(1, std::memory_order_relaxed);
  return helped;
}

}  // namespace qsf
