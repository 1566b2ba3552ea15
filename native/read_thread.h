// A thread that reads, for sources whose reading blocks: requests in, completions out, one after the other.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "native/source.h"

namespace qsf {

class ReadThread {
 public:
  /// Reads one request on the thread; looks at `cancelled` now and then.
  using Read = Status (*)(void* file, const ReadRequest& request, const std::atomic<bool>& cancelled);

  /// `file` must outlive the thread, which alone uses it.
  ReadThread(Read read, void* file);
  /// Cancels and joins.
  ~ReadThread();
  ReadThread(const ReadThread&) = delete;
  ReadThread& operator=(const ReadThread&) = delete;

  // As Source's.
  void submit(std::span<const ReadRequest> requests);
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  void cancel();

 private:
  void run();

  const Read read_;
  void* const file_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;  // of all below
  std::condition_variable work_, news_;
  Ring<ReadRequest, kSourceDepth> waiting_;
  Completions done_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace qsf
