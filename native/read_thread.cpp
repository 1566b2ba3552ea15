#include "native/read_thread.h"

namespace qsf {

ReadThread::ReadThread(Read read, void* file) : read_(read), file_(file) {
  thread_ = std::thread([this] { run(); });
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
  {
    const std::lock_guard lock(mutex_);
    for (const ReadRequest& request : requests) waiting_.push(request);
  }
  work_.notify_one();
}

std::size_t ReadThread::reap(std::span<Completion> out, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, timeout, [&] { return !done_.empty(); });
  return take_completions(done_, out);
}

void ReadThread::cancel() { cancelled_ = true; }

void ReadThread::run() {
  Completion completion;
  while (true) {
    ReadRequest request;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] { return end_ || !waiting_.empty(); });
      if (end_) return;
      request = waiting_.front();
      waiting_.pop();
    }
    completion.ticket = request.ticket;
    completion.status =
        cancelled_ ? make_error(ErrorCode::cancelled, "reading was cancelled") : read_(file_, request, cancelled_);
    {
      const std::lock_guard lock(mutex_);
      done_.push(completion);
    }
    news_.notify_one();
  }
}

}  // namespace qsf
