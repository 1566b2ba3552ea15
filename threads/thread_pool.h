// Threads for Workers: tasks are claimed by an atomic counter, so that a busy core delays only what it has taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "qsf/engine.h"

namespace qsf {

/// Tells the processor that this thread only looks whether something has changed.
void relax();

/// A number that threads wait on: they spin a while, then sleep.
class Signal {
 public:
  std::atomic<std::uint32_t> value{0};

  /// Returns once `value` is not `seen`.
  void wait_while(std::uint32_t seen);
  /// To be called after `value` has changed; costs a load when nobody sleeps.
  void notify();

 private:
  std::atomic<std::uint32_t> sleepers_{0};
};

class ThreadPool {
 public:
  /// The calling thread counts as one of `n_threads`, which is at least 1.
  explicit ThreadPool(std::uint32_t n_threads);
  ~ThreadPool() { end(); }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t count() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }
  /// Those beside the caller's.
  std::span<std::thread> threads() { return threads_; }
  Workers workers();

  /// Jobs from now on are for so many threads, the caller's among them: 1 to count(). Between two jobs.
  void use(std::uint32_t n_threads);

  /// Calls task(context, i) once for every i in [0, n), on the caller's thread too; one call at a time.
  void run(void (*task)(void* context, std::uint32_t index), void* context, std::uint32_t n);

  /// What the threads beside the caller's do while they have no job: work(context), again as long as it gives true. To
  /// be said once, before call().
  void lend(bool (*work)(void* context), void* context);
  /// Any thread: there is work of that kind.
  void call();

  /// Ends the threads; run() works on with the caller's alone.
  void end();

 private:
  using Task = void (*)(void*, std::uint32_t);

  void serve(std::uint32_t index);
  bool spare();
  bool work(std::uint64_t ticket, std::uint32_t index);

  // Which job runs and how far it is handed out: job number in the upper 32 bits, next index in the lower. A claim is
  // a compare-exchange of both, so a thread that is late cannot take anything of a newer job.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) Signal done_;
  alignas(64) std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint32_t> n_{0};
  std::uint32_t jobs_ = 0;  // the caller's thread's own: the number of the last one
  Signal news_;             // of a job, of other work, of the end
  std::atomic<bool (*)(void*)> spare_{nullptr};
  void* spare_context_ = nullptr;       // written before spare_
  std::atomic<std::uint32_t> used_{1};  // threads that take part in jobs
  Signal unused_;                       // of a change of used_, of other work, of the end: what the others wait for
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace qsf
