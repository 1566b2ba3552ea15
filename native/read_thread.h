// Reading that blocks behind a source's interface: the reaping thread reads while it would wait, and a thread of the
// source's own while the reaping one does something else. So small reads cost no hand-over, and large ones that
// are asked for ahead go on beside unpacking.
#pragma once

#include <array>
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
  /// Reads one request, on two threads at a time at most; looks at `cancelled` now and then.
  using Read = Status (*)(void* file, const ReadRequest& request, const std::atomic<bool>& cancelled);

  /// Whether reading it means copying from the page cache.
  using Cached = bool (*)(void* file, const ReadRequest& request);

  /// Tells the system that the request is read soon; does not wait. Or nullptr.
  using Ahead = void (*)(void* file, const ReadRequest& request);

  /// `file` must outlive this. With `helped`, what is cached is left to read_cached().
  ReadThread(Read read, Cached cached, Ahead ahead, void* file, bool helped);
  /// Cancels and joins.
  ~ReadThread();
  ReadThread(const ReadThread&) = delete;
  ReadThread& operator=(const ReadThread&) = delete;

  // As Source's.
  void submit(std::span<const ReadRequest> requests);
  std::size_t reap(std::span<Completion> out, std::chrono::milliseconds timeout);
  void cancel();
  Helped read_cached(Completion& out);
  std::size_t at_hand();

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
    std::uint32_t asked = 0, left = 0;  // bytes that somebody has taken; that are not there yet
    Status status;
  };

  const Read read_;
  const Cached cached_;
  const Ahead ahead_;
  void* const file_;
  const bool helped_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;                     // of all below
  std::condition_variable work_, news_;  // of the own thread; of the reaping one
  Requests waiting_;                     // for the threads here
  std::array<Shared, kSourceDepth> shared_;
  Ring<std::uint8_t, kSourceDepth> free_, near_;  // of shared_; near_: those that helpers take parts of
  Completions done_;
  std::size_t reading_ = 0;  // requests and parts that are being read
  std::size_t told_ = 0;     // of waiting_, from the front: the system knows that they are read soon
  bool cold_ = false;        // the last read came from storage
  bool reaping_ = false, end_ = false;
  std::thread thread_;
};

}  // namespace qsf
