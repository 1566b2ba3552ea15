// The common part of sources with several reads past the page cache under way. Requests reach the reaping thread, and
// only that thread touches the pieces and the system's queue of reads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "native/sources/clock.h"
#include "native/sources/piece_reads.h"
#include "native/sources/regular_file.h"
#include "native/sources/ring.h"
#include "native/sources/source.h"
#include "qsf/base/try.h"

namespace qsf {

/// A Port has:
///   Status open(const DirectFile& file, std::span<std::byte> buffers)  unsupported_host if the system refuses;
///   void start(PieceReads& reads)                      begins the pieces that there is room for;
///   void take_ready(PieceReads& reads)                 calls arrived() for the reads that have ended;
///   bool take_one(PieceReads&, nanoseconds at_most)    waits for one, kLongestWait at most; false if it cannot wait;
///   void wake()                                        any thread: ends a wait;
///   kLongestWait
/// Its destructor, which runs when no read is under way, frees the resources.
template <class Port>
struct PieceSource {
  OpenFile file, direct_file;  // through the page cache, and past it
  std::optional<PieceReads> reads;
  std::mutex mutex;
  Ring<ReadRequest, kSourceDepth> asked;
  bool sleeping = false;
  std::atomic<bool> cancelled{false};
  std::optional<Port> port;

  ~PieceSource() {
    while (reads && reads->under_way() != 0 && port->take_one(*reads, Port::kLongestWait)) {
    }
    port.reset();
  }

  /// Moves new requests to `reads` and returns whether there were any. If not, and `then_sleep` is set, the thread
  /// counts as asleep.
  bool take_asked(bool then_sleep) {
    const std::lock_guard lock(mutex);
    const bool any = !asked.empty();
    for (; !asked.empty(); asked.pop()) reads->add(asked.front());
    sleeping = then_sleep && !any;
    return any;
  }

  static Result<void*> open(const std::string& where, const SourceOptions&, std::uint64_t& size) {
    constexpr std::size_t kBuffers = 4;  // two MiB are more than a fast disk moves in its latency
    auto state = std::make_unique<PieceSource>();
    QSF_LET(file, open_regular(where, size));
    const DirectFile direct = reopen_direct(file.fd());
    state->file = std::move(file);
    state->direct_file = OpenFile(direct.fd);
    if (direct.fd < 0) {
      return make_error(ErrorCode::unsupported_host, "{} cannot be read past the page cache", where);
    }
    Result<AlignedBuffers> buffers = AlignedBuffers::take(kBuffers, kPieceBytes);
    if (!buffers) return buffers.error();
    state->port.emplace();
    QSF_TRY(state->port->open(direct, buffers->all()));
    state->reads.emplace(state->file.fd(), size, direct.block, std::move(*buffers));
    return static_cast<void*>(state.release());
  }

  static void submit(void* state, std::span<const ReadRequest> requests) {
    PieceSource& s = *static_cast<PieceSource*>(state);
    bool sleeping;
    {
      const std::lock_guard lock(s.mutex);
      for (const ReadRequest& request : requests) s.asked.push(request);
      sleeping = s.sleeping;
    }
    if (sleeping) s.port->wake();
  }

  static std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout) {
    PieceSource& s = *static_cast<PieceSource*>(state);
    const Clock::time_point end = Clock::now() + timeout;
    while (true) {
      s.take_asked(false);
      if (s.cancelled) s.reads->cancel();
      s.port->start(*s.reads);
      s.port->take_ready(*s.reads);
      if (const std::size_t n = take_completions(s.reads->done(), out); n != 0) return n;
      if (s.cancelled && s.reads->under_way() == 0) return 0;
      const auto left = end - Clock::now();
      if (left <= Clock::duration::zero()) return 0;
      if (s.take_asked(true)) continue;
      s.port->take_one(*s.reads, std::min<std::chrono::nanoseconds>(left, Port::kLongestWait));
      s.take_asked(false);
    }
  }

  static void cancel(void* state) {
    PieceSource& s = *static_cast<PieceSource*>(state);
    s.cancelled = true;
    s.port->wake();
  }

  static void close(void* state) { delete static_cast<PieceSource*>(state); }

  static constexpr SourceKind kind(std::string_view name, const SourceKind* instead) {
    return {name, false, open, submit, reap, cancel, close, nullptr, nullptr, instead, true};
  }
};

}  // namespace qsf
