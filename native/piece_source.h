// What the sources share that have several reads past the page cache under way: what is asked for reaches the reaping
// thread, which alone touches the pieces and the system's port of reads.
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

#include "native/clock.h"
#include "native/piece_reads.h"
#include "native/regular_file.h"
#include "native/ring.h"
#include "native/source.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf {

/// A Port has:
///   Status open(const DirectFile& file, std::span<std::byte> buffers)  unsupported_host where the system refuses;
///   void start(PieceReads& reads)                      begins what there is room for;
///   void take_ready(PieceReads& reads)                 tells `reads` of what has arrived;
///   bool take_one(PieceReads&, nanoseconds at_most)    waits for one, kLongestWait at most; false when it cannot wait;
///   void wake()                                        any thread: ends a wait;
///   kLongestWait
/// and ends what it opened when it goes, which is once nothing is under way.
template <class Port>
struct PieceSource {
  int fd = -1;
  DirectFile direct;
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
    for (const int file : {fd, direct.fd}) {
      if (file >= 0) sys::close_file(file);
    }
  }

  /// Takes over what was asked for, and says to be asleep when there was nothing.
  bool take_asked(bool then_sleep) {
    const std::lock_guard lock(mutex);
    const bool any = !asked.empty();
    for (; !asked.empty(); asked.pop()) reads->add(asked.front());
    sleeping = then_sleep && !any;
    return any;
  }

  static Result<void*> open(const std::string& where, const SourceOptions&, std::uint64_t& size) {
    constexpr std::size_t kBuffers = 4;  // four MiB are more than a fast disk moves in its latency
    auto state = std::make_unique<PieceSource>();
    QSF_LET(fd, open_regular(where, size));
    state->fd = fd;
    state->direct = reopen_direct(fd);
    if (state->direct.fd < 0) {
      return make_error(ErrorCode::unsupported_host, "{} cannot be read past the page cache", where);
    }
    Result<AlignedBuffers> buffers = AlignedBuffers::take(kBuffers, kPieceBytes);
    if (!buffers) return buffers.error();
    state->port.emplace();
    QSF_TRY(state->port->open(state->direct, buffers->all()));
    state->reads.emplace(fd, size, state->direct.block, std::move(*buffers));
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
