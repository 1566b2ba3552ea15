// The one thread that reads: it takes the session's requests in order, joins neighbours, and completes them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <utility>

#include "native/source.h"
#include "qsf/engine.h"

namespace qsf {

class IoThread {
 public:
  /// Both must outlive the thread.
  IoThread(Session& session, Source& source);
  /// Cancels what is being read and joins.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// Moves the session's requests into the queue. Called by the computing thread.
  void pump();
  /// Requests completed or failed so far.
  std::uint64_t settled() const { return settled_.load(std::memory_order_acquire); }
  /// Waits until settled() differs from `seen`, or the time is over.
  void wait(std::uint64_t seen, std::chrono::milliseconds at_most);
  /// Seconds that reading, and checking and unpacking, took since the last call.
  std::pair<double, double> take_seconds();

 private:
  static constexpr std::size_t kCapacity = 64;

  void run();
  std::size_t take_neighbours();

  Session& session_;
  Source& source_;
  std::mutex mutex_;
  std::condition_variable work_, news_;
  std::array<ReadRequest, kCapacity> queue_{};
  std::size_t first_ = 0, count_ = 0;
  std::array<ReadRequest, kCapacity> batch_{};  // the reading thread's own
  std::atomic<std::uint64_t> settled_{0};
  std::atomic<double> reading_{0}, unpacking_{0};
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace qsf
