// The thread that takes from a source what was read and completes it in the session, beside the computing.
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

namespace qsf {

/// The computing thread submits, this one reaps; a slot is the source's in between, then the session's.
class IoThread {
 public:
  /// Both must outlive the thread.
  IoThread(Session& session, Source& source);
  /// Cancels what is being read and joins.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Moves the session's requests into the source. Called by the computing thread.
  void pump();
  /// Requests completed or failed so far.
  std::uint64_t settled() const { return settled_.load(std::memory_order_acquire); }
  /// Waits until settled() differs from `seen`, or the time is over.
  void wait(std::uint64_t seen, std::chrono::milliseconds at_most);
  /// Any thread, several at a time: reads and completes what takes copying, not waiting; false when there was nothing.
  bool help();
  /// Seconds that waiting for the source, and checking and unpacking, took since the last call.
  std::pair<double, double> take_seconds();

 private:
  void run();
  void settle(const Completion& done);

  Session& session_;
  Source& source_;
  std::array<ReadRequest, kSourceDepth> batch_{};  // the computing thread's own
  std::array<Completion, kSourceDepth> done_{};    // this thread's own
  std::mutex mutex_;
  std::condition_variable news_;
  std::atomic<std::uint64_t> settled_{0};
  std::atomic<double> reading_{0}, unpacking_{0};
  std::atomic<Clock::time_point> idle_until_{};  // when something was last asked of an idle source
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace qsf
