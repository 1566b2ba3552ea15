// A pool of threads for Workers. Threads claim tasks with an atomic counter, so that a busy core delays only its
// claimed tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "qsf/engine.h"
#include "threads/thread.h"

namespace qsf {

/// Hints to the processor that this thread is spinning.
void relax();

/// A number that threads wait on: they spin for a while, then sleep.
class Signal {
 public:
  std::atomic<std::uint32_t> value{0};

  /// Returns when `value` differs from `seen`.
  void wait_while(std::uint32_t seen);
  /// Wakes the waiting threads. Must be called after `value` has changed; costs one load if no thread sleeps.
  void notify();

 private:
  std::atomic<std::uint32_t> sleepers_{0};
};

class ThreadPool {
 public:
  /// The calling thread counts as one of `n_threads`, which is at least 1. The pool has fewer threads if the system
  /// refuses some.
  explicit ThreadPool(std::uint32_t n_threads);
  ~ThreadPool() { end(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t count() const { return count_; }
  /// Returns the handles of all threads except the caller's.
  std::vector<Thread::Handle> handles() const;
  Workers workers();

  /// Sets the number of threads for later jobs, the caller's included: 1 to count(). Must be called between two jobs.
  void use(std::uint32_t n_threads);

  /// Calls task(context, i) once for every i in [0, n), also on the caller's thread. Only one call may run at a time.
  void run(void (*task)(void* context, std::uint32_t index), void* context, std::uint32_t n);

  /// Gives the other threads work for the time without a job: they call work(context) repeatedly while it returns true.
  /// Must be called once, before call().
  void lend(bool (*work)(void* context), void* context);
  /// Announces such work. Any thread may call it.
  void call();

  /// Ends the threads. run() continues to work with the caller's thread.
  void end();

 private:
  using Task = void (*)(void*, std::uint32_t);
  struct Server {
    ThreadPool* pool = nullptr;
    std::uint32_t index = 0;
    Thread thread = {};
    void serve() { pool->serve(index); }
  };

  void serve(std::uint32_t index);
  bool spare();
  bool work(std::uint64_t ticket, std::uint32_t index);

  // The job number in the upper 32 bits and the next index in the lower. A claim is a compare-exchange of both, so that
  // a late thread cannot take a task of a newer job.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) Signal done_;
  alignas(64) std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint32_t> n_{0};
  std::uint32_t jobs_ = 0;  // used by the caller's thread only: the number of the last job
  Signal news_;             // signals a job, other work, or the end
  std::atomic<bool (*)(void*)> spare_{nullptr};
  void* spare_context_ = nullptr;       // written before spare_
  std::atomic<std::uint32_t> used_{1};  // threads that take part in jobs
  Signal unused_;                       // signals a change of used_, other work, or the end to the unused threads
  std::atomic<bool> stop_{false};
  std::uint32_t count_ = 1;      // threads, the caller's among them
  std::vector<Server> servers_;  // the first count_ - 1 of them run
};

}  // namespace qsf
