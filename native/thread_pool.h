// Threads for Workers: tasks are claimed by an atomic counter, so that a busy core delays only what it has taken.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine.h"

namespace qsf {

/// Physical cores this process may use: by affinity, and by the control group's processor quota. At least 1.
std::uint32_t usable_cores();

class ThreadPool {
 public:
  /// The calling thread counts as one of `n_threads`; 0 means usable_cores(). With `pin`, each
  /// further thread stays on one of the processors that are allowed.
  explicit ThreadPool(std::uint32_t n_threads, bool pin = false);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::uint32_t count() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }
  Workers workers();

  /// Calls task(context, i) once for every i in [0, n), on the caller's thread too; one call at a time.
  void run(void (*task)(void* context, std::uint32_t index), void* context, std::uint32_t n);

 private:
  using Task = void (*)(void*, std::uint32_t);

  void serve();
  bool work(std::uint64_t ticket);

  // Which job runs and how far it is handed out: job number in the upper 32 bits, next index in the lower. A claim is
  // a compare-exchange of both, so a thread that is late cannot take anything of a newer job.
  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
  alignas(64) std::atomic<Task> task_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<std::uint32_t> n_{0};
  std::atomic<std::uint32_t> job_{0};  // what parked threads wait on
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace qsf
