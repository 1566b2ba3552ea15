#include "native/io_thread.h"

#include <span>

#include "native/clock.h"

namespace qsf {

IoThread::IoThread(Session& session, Source& source) : session_(session), source_(source) {
  thread_ = std::thread([this] { run(); });
}

IoThread::~IoThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  source_.cancel();
  work_.notify_one();
  thread_.join();
}

void IoThread::pump() {
  bool added = false;
  {
    const std::lock_guard lock(mutex_);
    while (count_ < kCapacity) {
      const std::optional<ReadRequest> request = session_.next_request();
      if (!request) break;
      queue_[(first_ + count_) % kCapacity] = *request;
      ++count_;
      added = true;
    }
  }
  if (added) work_.notify_one();
}

void IoThread::wait(std::uint64_t seen, std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, at_most, [&] { return settled() != seen; });
}

std::pair<double, double> IoThread::take_seconds() { return {reading_.exchange(0), unpacking_.exchange(0)}; }

std::size_t IoThread::take_neighbours() {
  std::size_t n = 0;
  std::uint64_t total = 0;
  while (count_ > 0 && n < kCapacity) {
    const ReadRequest& next = queue_[first_];
    if (n > 0 &&
        (next.offset != batch_[n - 1].offset + batch_[n - 1].size || total + next.size > source_.kind().merge_bytes)) {
      break;
    }
    total += next.size;
    batch_[n++] = next;
    first_ = (first_ + 1) % kCapacity;
    --count_;
  }
  return n;
}

void IoThread::run() {
  std::array<std::span<std::byte>, kCapacity> pieces;
  while (true) {
    std::size_t n = 0;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return stop_ || count_ > 0; });
      if (stop_) return;
      n = take_neighbours();
    }
    for (std::size_t i = 0; i < n; ++i) pieces[i] = {batch_[i].into, batch_[i].size};
    const Clock::time_point before = Clock::now();
    const Status read = source_.read(batch_[0].offset, std::span(pieces).first(n));
    reading_.fetch_add(seconds_since(before));
    for (std::size_t i = 0; i < n; ++i) {
      const Clock::time_point begin = Clock::now();
      if (read) {
        // A failed check is the session's to report: its next step() ends with that error.
        (void)session_.complete(batch_[i].ticket);
      } else {
        session_.fail(batch_[i].ticket, read.error());
      }
      unpacking_.fetch_add(seconds_since(begin));
      {
        const std::lock_guard lock(mutex_);
        settled_.fetch_add(1, std::memory_order_release);
      }
      news_.notify_one();
    }
  }
}

}  // namespace qsf
