// The thread that takes finished reads from a source. The session completes them, which checks and unpacks their bytes,
// during the computing: on this thread, or on computing threads with nothing else to do. If the system refuses the
// thread, a waiting thread does its work.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

#include "native/sources/clock.h"
#include "native/sources/source.h"
#include "qsf/engine.h"
#include "threads/thread.h"
#include "threads/thread_pool.h"

namespace qsf {

/// The computing thread submits, and this thread reaps. A slot belongs to the source in between, then to the session.
class IoThread {
 public:
  /// All arguments must outlive the thread. With `helped`, finished reads are left to help(), which a waiting thread
  /// and the threads of `pool` call.
  IoThread(Session& session, Source& source, ThreadPool& pool, bool helped);
  /// Cancels all reads and joins. The pool must have ended.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Moves the session's requests into the source. Must be called by the computing thread.
  void pump();
  /// Returns how often a read has arrived or was completed.
  std::uint64_t news() const { return n_news_.load(std::memory_order_acquire); }
  /// Waits until news() differs from `seen`, or the time is over. Must be called by the computing thread.
  void wait(std::uint64_t seen, std::chrono::milliseconds at_most);
  /// Completes a read that has arrived, or copies a part of one without waiting. Returns false if there was nothing to
  /// do. Any thread, several at a time.
  bool help();
  /// Returns the seconds of waiting for the source, and those of checking and unpacking, since the last call.
  std::pair<double, double> take_seconds();

 private:
  static constexpr std::size_t kArrived = 2 * kSourceDepth;

  void run();
  void take_read(std::chrono::milliseconds at_most);
  bool settle_arrived();
  void settle(const Completion& arrived);
  void tell();

  Session& session_;
  Source& source_;
  ThreadPool& pool_;
  const bool helped_;
  std::array<ReadRequest, kSourceDepth> batch_{};  // the computing thread's own
  std::array<Completion, kSourceDepth> done_{};    // of the thread in take_read()
  std::mutex mutex_;
  std::condition_variable news_;
  Ring<Completion, kArrived> arrived_;
  std::atomic<std::uint64_t> n_news_{0};
  std::atomic<std::uint32_t> helping_{0};  // threads
  std::atomic<double> reading_{0}, unpacking_{0};
  std::atomic<Clock::time_point> idle_until_{};  // time of the last request to an idle source
  std::atomic<bool> stop_{false};
  Thread thread_;
};

}  // namespace qsf
