#include "threads/thread.h"

#include <pthread.h>

#include <atomic>

namespace qsf {
namespace {

std::atomic<std::uint32_t> n_refused{0};

}  // namespace

bool Thread::begin(void* (*body)(void* context), void* context) {
  started_ = ::pthread_create(&handle_, nullptr, body, context) == 0;
  if (!started_) n_refused.fetch_add(1, std::memory_order_relaxed);
  return started_;
}

void Thread::join() {
  if (started_) ::pthread_join(handle_, nullptr);
  started_ = false;
}

std::uint32_t Thread::refused() { return n_refused.load(std::memory_order_relaxed); }

}  // namespace qsf
