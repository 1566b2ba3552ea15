// Blocking reads with the interface of a source. The reaping thread reads when it would otherwise wait, and a thread of
// the source reads while the reaping thread is busy. So small reads need no second thread, and large reads that are
// requested ahead go on during unpacking. If the system refuses the thread, the reaping thread reads everything.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>

#include "native/sources/source.h"
#include "threads/thread.h"

namespace qsf {

class ReadThread {
 public:
  /// Reads one request; checks `cancelled` now and then. At most two threads call it at a time, and others for parts of
  /// cached requests.
  using Read = Status (*)(void* file, const ReadRequest& request, const std::atomic<bool>& cancelled);

  /// Whether reading the request means copying from the page cache.
  using Cached = bool (*)(void* file, const ReadRequest& request);

  /// Announces to the system that the request will be read soon; does not wait. May be nullptr.
  using Ahead = void (*)(void* file, const ReadRequest& request);

  /// `file` must outlive this. With `helped`, cached requests are left to read_cached().
  ReadThread(Read read, Cached cached, Ahead ahead, void* file, bool helped);
  /// Cancels and joins.
  ~ReadThread();
  ReadThread(const ReadThread&) = delete;
  ReadThread& operator=(const ReadThread&) = delete;

  // As in Source.
  void submit(std::span<const ReadRequest> requests);
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  void cancel();
  Helped read_cached(Completion& out);
  std::size_t at_hand();
  bool is_cached(const ReadRequest& request) const { return cached_(file_, request); }
  Status copy(const ReadRequest& request) const { return read_(file_, request, cancelled_); }

 private:
  static constexpr std::size_t kTold = 8;

  void run();
  bool worth_a_thread() const;
  using Requests = Ring<ReadRequest, kSourceDepth>;
  ReadRequest take(Requests& from);
  Helped read_part(Completion& out);
  void give_up_near();
  void read_one(std::unique_lock<std::mutex>& lock);
  std::size_t untold(std::span<ReadRequest> out);

  /// A request that several threads copy, each a part.
  struct Shared {
    ReadRequest request;
    std::uint32_t asked = 0, left = 0;  // bytes that threads have taken; bytes that have not arrived
    Status status;
  };

  const Read read_;
  const Cached cached_;
  const Ahead ahead_;
  void* const file_;
  const bool helped_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;                     // guards all members below
  std::condition_variable work_, news_;  // for the own thread; for the reaping thread
  Requests waiting_;                     // for the own and the reaping thread
  std::array<Shared, kSourceDepth> shared_;
  Ring<std::uint8_t, kSourceDepth> free_, near_;  // indices of shared_; near_: requests whose parts helpers take
  Completions done_;
  std::size_t reading_ = 0;  // requests and parts that are being read
  std::size_t told_ = 0;     // requests of waiting_, from the front, that were announced to the system
  bool cold_ = false;        // the last read came from storage
  bool reaping_ = false, end_ = false;
  Thread thread_;
};

}  // namespace qsf
