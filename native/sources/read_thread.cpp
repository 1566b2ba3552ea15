#include "native/sources/read_thread.h"

#include <algorithm>

#include "native/sources/clock.h"
#include "system/cores.h"

namespace qsf {

namespace {

/// Bytes whose reading takes several times as long as waking a thread. Fewer bytes are left to the reaping thread.
constexpr std::uint32_t kWorthAThread = 256u << 10;
/// Bytes that a helper takes at a time: about ten microseconds, so that no thread waits long for another's part.
constexpr std::uint32_t kPart = 128u << 10;
/// Bytes per second. Slower reads came from storage, not from the page cache.
constexpr double kCopying = 2e9;

}  // namespace

ReadThread::ReadThread(Read read, Cached cached, Ahead ahead, void* file, bool helped)
    : read_(read), cached_(cached), ahead_(ahead), file_(file), helped_(helped) {
  for (std::size_t i = 0; i < shared_.size(); ++i) free_.push(static_cast<std::uint8_t>(i));
  (void)thread_.start<&ReadThread::run>(this);
}

ReadThread::~ReadThread() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    end_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void ReadThread::submit(std::span<const ReadRequest> requests) {
  bool reaping = false, worth = false;
  {
    const std::lock_guard lock(mutex_);
    for (const ReadRequest& request : requests) {
      if (!helped_ || cancelled_ || free_.empty() || !cached_(file_, request)) {
        waiting_.push(request);
        continue;
      }
      shared_[free_.front()] = {request, 0, request.size, {}};
      near_.push(free_.front());
      free_.pop();
    }
    reaping = reaping_ && !waiting_.empty();
    worth = worth_a_thread();
  }
  if (reaping) {
    news_.notify_one();
  } else if (worth) {
    work_.notify_one();
  }
}

std::size_t ReadThread::reap(std::span<Completion> out, std::chrono::milliseconds timeout) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  reaping_ = true;
  while (done_.empty() && !(cancelled_ && waiting_.empty() && near_.empty() && reading_ == 0)) {
    if (cancelled_ && !near_.empty()) {
      give_up_near();
      continue;
    }
    if (!waiting_.empty()) {
      read_one(lock);
    } else if (news_.wait_until(lock, end) == std::cv_status::timeout) {
      break;
    }
  }
  reaping_ = false;
  const std::size_t n = take_completions(done_, out);
  const bool worth = worth_a_thread();
  lock.unlock();
  if (worth) work_.notify_one();
  return n;
}

void ReadThread::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  news_.notify_one();
}

bool ReadThread::worth_a_thread() const { return !waiting_.empty() && waiting_.front().size >= kWorthAThread; }

Helped ReadThread::read_cached(Completion& out) {
  if (helped_) return read_part(out);
  std::unique_lock lock(mutex_);
  if (waiting_.empty() || cancelled_ || !cached_(file_, waiting_.front())) return Helped::nothing;
  const ReadRequest request = take(waiting_);
  lock.unlock();
  out = {request.ticket, read_(file_, request, cancelled_)};
  lock.lock();
  --reading_;
  if (cancelled_) news_.notify_one();
  return Helped::last;
}

Helped ReadThread::read_part(Completion& out) {
  std::unique_lock lock(mutex_);
  if (near_.empty() || cancelled_) return Helped::nothing;
  const std::uint8_t at = near_.front();
  Shared& shared = shared_[at];
  ReadRequest part = shared.request;
  part.offset += shared.asked;
  part.into += shared.asked;
  part.size = std::min(part.size - shared.asked, kPart);
  part.blocks = false;  // its blocks hold other parts too
  shared.asked += part.size;
  if (shared.asked == shared.request.size) near_.pop();
  ++reading_;
  lock.unlock();
  const Status status = read_(file_, part, cancelled_);
  lock.lock();
  --reading_;
  if (cancelled_) news_.notify_one();
  if (!status && shared.status) shared.status = status;
  shared.left -= part.size;
  if (shared.left != 0) return Helped::some;
  out = {shared.request.ticket, shared.status};
  free_.push(at);
  return Helped::last;
}

/// Ends the parts that helpers have not taken. If helpers still read others, the last of them completes the request.
void ReadThread::give_up_near() {
  for (; !near_.empty(); near_.pop()) {
    Shared& shared = shared_[near_.front()];
    shared.status = make_error(ErrorCode::cancelled, "reading was cancelled");
    shared.left -= shared.request.size - shared.asked;
    if (shared.left != 0) continue;
    done_.push({shared.request.ticket, shared.status});
    free_.push(near_.front());
  }
}

std::size_t ReadThread::at_hand() {
  const std::lock_guard lock(mutex_);
  if (helped_) return near_.size();
  return !waiting_.empty() && cached_(file_, waiting_.front()) ? 1 : 0;
}

ReadRequest ReadThread::take(Requests& from) {
  const ReadRequest request = from.front();
  from.pop();
  if (told_ != 0) --told_;
  ++reading_;
  return request;
}

/// Writes waiting requests that were not announced to `out`, and counts them as announced. Returns their number.
std::size_t ReadThread::untold(std::span<ReadRequest> out) {
  std::size_t n = 0;
  for (; n < out.size() && told_ < waiting_.size(); ++told_) out[n++] = waiting_[told_];
  return n;
}

/// Takes a request, reads it without the lock, and stores its completion.
void ReadThread::read_one(std::unique_lock<std::mutex>& lock) {
  const ReadRequest request = take(waiting_);
  std::array<ReadRequest, kTold> soon;
  const std::size_t n = ahead_ != nullptr && cold_ ? untold(soon) : 0;
  lock.unlock();
  for (const ReadRequest& next : std::span(soon).first(n)) ahead_(file_, next);
  const Clock::time_point begin = Clock::now();
  const Status status =
      cancelled_ ? make_error(ErrorCode::cancelled, "reading was cancelled") : read_(file_, request, cancelled_);
  const double seconds = seconds_since(begin);
  lock.lock();
  if (request.size >= kPart) cold_ = request.size < seconds * kCopying;
  --reading_;
  done_.push({request.ticket, status});
}

void ReadThread::run() {
  raise_reading_thread();
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return end_ || (!reaping_ && worth_a_thread()); });
    if (end_) return;
    read_one(lock);
    if (reaping_) news_.notify_one();
  }
}

}  // namespace qsf
