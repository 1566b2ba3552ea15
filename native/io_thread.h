// The thread that takes from a source what was read. It is completed in the session, which checks and unpacks it,
// beside the computing: by this thread, or by computing ones that have nothing else to do.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "native/clock.h"
#include "native/source.h"
#include "qsf/engine.h"
#include "threads/thread_pool.h"

namespace qsf {

/// The computing thread submits, this one reaps; a slot is the source's in between, then the session's.
class IoThread {
 public:
  /// All must outlive the thread. With `helped`, what arrives is left to those who help(): the threads of `pool`, to
  /// which they are lent, and whoever waits.
  IoThread(Session& session, Source& source, ThreadPool& pool, bool helped);
  /// Cancels what is being read and joins. The pool has ended.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Moves the session's requests into the source. Called by the computing thread.
  void pump();
  /// How often something has arrived or was completed.
  std::uint64_t news() const { return n_news_.load(std::memory_order_acquire); }
  /// Waits until news() differs from `seen`, or the time is over.
  void wait(std::uint64_t seen, std::chrono::milliseconds at_most);
  /// Any thread, several at a time: completes one that has arrived, or reads some of what takes copying, not waiting;
  /// false when there was nothing.
  bool help();
  /// Seconds that waiting for the source, and checking and unpacking, took since the last call.
  std::pair<double, double> take_seconds();

 private:
  static constexpr std::size_t kArrived = 2 * kSourceDepth;

  void run();
  bool settle_arrived();
  void settle(const Completion& done);
  void tell();

  Session& session_;
  Source& source_;
  ThreadPool& pool_;
  const bool helped_;
  std::array<ReadRequest, kSourceDepth> batch_{};  // the computing thread's own
  std::array<Completion, kSourceDepth> done_{};    // this thread's own
  std::mutex mutex_;
  std::condition_variable news_;
  Ring<Completion, kArrived> arrived_;
  std::atomic<std::uint64_t> n_news_{0};
  std::atomic<std::uint32_t> helping_{0};  // threads
  std::atomic<double> reading_{0}, unpacking_{0};
  std::atomic<Clock::time_point> idle_until_{};  // when something was last asked of an idle source
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace qsf
