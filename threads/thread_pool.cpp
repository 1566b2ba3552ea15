#include "threads/thread_pool.h"

#include <algorithm>
#include <chrono>

#ifdef _WIN32
#include <windows.h>
#endif

namespace qsf {
namespace {

/// The time that a thread spins. It is longer than the usual gap between two products and shorter than a time slice.
constexpr std::chrono::microseconds kSpin{100};

// libc++ polls on systems without a futex that it knows, such as WebAssembly.
#ifdef __EMSCRIPTEN__
void sleep_while(std::atomic<std::uint32_t>& at, std::uint32_t value) {
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&at), static_cast<int>(value), -1);
}
void wake(std::atomic<std::uint32_t>& at) { __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&at), ~0u); }
#elif defined(_WIN32)
// Without a futex, libstdc++ reads the value before it takes its lock, and can miss a notification.
void sleep_while(std::atomic<std::uint32_t>& at, std::uint32_t value) {
  ::WaitOnAddress(&at, &value, sizeof value, INFINITE);
}
void wake(std::atomic<std::uint32_t>& at) { ::WakeByAddressAll(&at); }
#else
void sleep_while(std::atomic<std::uint32_t>& at, std::uint32_t value) { at.wait(value); }
void wake(std::atomic<std::uint32_t>& at) { at.notify_all(); }
#endif

}  // namespace

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

void Signal::wait_while(std::uint32_t seen) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (value.load(std::memory_order_acquire) != seen) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  // A thread that changes the value after this sees the sleeper, or the sleeper sees the changed value.
  sleepers_.fetch_add(1);
  while (value.load() == seen) sleep_while(value, seen);
  sleepers_.fetch_sub(1);
}

void Signal::notify() {
  if (sleepers_.load() != 0) wake(value);
}

ThreadPool::ThreadPool(std::uint32_t n_threads) : used_(n_threads), servers_(n_threads - 1) {
  for (Server& server : servers_) {
    server.pool = this;
    server.index = count_;
    if (!server.thread.start<&Server::serve>(&server)) break;
    ++count_;
  }
  used_ = count_;
}

std::vector<Thread::Handle> ThreadPool::handles() const {
  std::vector<Thread::Handle> handles;
  for (std::uint32_t i = 1; i < count_; ++i) handles.push_back(servers_[i - 1].thread.handle());
  return handles;
}

void ThreadPool::end() {
  stop_ = true;
  call();
  for (Server& server : servers_) server.thread.join();
  count_ = 1;
}

Workers ThreadPool::workers() {
  Workers workers;
  workers.host = this;
  workers.count = count();
  workers.run = [](void* host, Task task, void* context, std::uint32_t n) {
    static_cast<ThreadPool*>(host)->run(task, context, n);
  };
  return workers;
}

void ThreadPool::use(std::uint32_t n_threads) {
  used_.store(n_threads);
  unused_.value.fetch_add(1);
  unused_.notify();
}

void ThreadPool::run(Task task, void* context, std::uint32_t n) {
  if (count_ == 1 || n <= 1 || used_.load(std::memory_order_relaxed) == 1) {
    for (std::uint32_t i = 0; i < n; ++i) task(context, i);
    return;
  }
  // Each job has two numbers. During the first, nothing can be claimed, so that the job's description can be written.
  const std::uint32_t closed = jobs_ + 1;
  const std::uint32_t open = jobs_ = closed + 1;
  ticket_.store(std::uint64_t{closed} << 32 | 0xffffffffu);
  n_.store(n);
  task_.store(task);
  context_.store(context);
  done_.value.store(0);
  ticket_.store(std::uint64_t{open} << 32);
  news_.value.fetch_add(1);
  news_.notify();
  while (work(ticket_.load(), 0)) {
  }
  for (std::uint32_t done = done_.value.load(); done != n; done = done_.value.load()) done_.wait_while(done);
}

/// Claims and runs a share of the job of `ticket`. Returns false if nothing of it is left for this thread.
bool ThreadPool::work(std::uint64_t ticket, std::uint32_t index) {
  const Task task = task_.load();
  void* context = context_.load();
  const std::uint32_t n = n_.load();
  const auto begin = static_cast<std::uint32_t>(ticket);
  if (begin >= n) return false;
  const std::uint32_t used = used_.load();  // of this ticket, if the ticket is unchanged below
  if (index >= used) return false;
  const std::uint32_t share = std::max((n - begin) / (4 * used), 1u);
  // All values read above belong to this ticket's job if the ticket is unchanged now.
  if (!ticket_.compare_exchange_strong(ticket, ticket + share)) return true;
  for (std::uint32_t i = begin; i < begin + share; ++i) task(context, i);
  if (done_.value.fetch_add(share) + share == n) done_.notify();
  return true;
}

void ThreadPool::serve(std::uint32_t index) {
  std::uint32_t seen = 0, seen_unused = 0;
  while (!stop_) {
    const bool used = index < used_.load();
    while (work(ticket_.load(), index)) {
    }
    if (spare()) continue;
    Signal& signal = used ? news_ : unused_;
    std::uint32_t& last = used ? seen : seen_unused;
    signal.wait_while(last);
    last = signal.value.load();
  }
}

void ThreadPool::lend(bool (*work)(void* context), void* context) {
  spare_context_ = context;
  spare_.store(work, std::memory_order_release);
}

void ThreadPool::call() {
  for (Signal* signal : {&news_, &unused_}) {
    signal->value.fetch_add(1);
    signal->notify();
  }
}

bool ThreadPool::spare() {
  bool (*const work)(void*) = spare_.load(std::memory_order_acquire);
  return work != nullptr && work(spare_context_);
}

}  // namespace qsf
