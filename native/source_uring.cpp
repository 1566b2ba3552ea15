// Files past the page cache, several reads under way at a time: io_uring with registered buffers.
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>

#include "native/clock.h"
#include "native/piece_reads.h"
#include "native/regular_file.h"
#include "native/ring.h"
#include "native/source.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

constexpr std::size_t kPieces = 4;  // under way; four MiB are more than a fast disk moves in its latency
constexpr std::uint64_t kWoken = kPieces;

/// The reaping thread alone touches the ring and the pieces; requests reach it by `asked` and the event.
struct Uring {
  int fd = -1, event = -1;
  DirectFile direct;
  io_uring ring{};
  bool has_ring = false, fixed = false, listening = false;
  std::uint64_t woken = 0;  // what reading the event gives
  std::optional<PieceReads> reads;
  std::mutex mutex;
  Ring<ReadRequest, kSourceDepth> asked;
  bool sleeping = false;
  std::atomic<bool> cancelled{false};

  ~Uring() {
    if (has_ring) {
      while (reads && reads->under_way() != 0 && take_one(nullptr)) {
      }
      ::io_uring_queue_exit(&ring);
    }
    for (const int file : {fd, event, direct.fd}) {
      if (file >= 0) ::close(file);
    }
  }

  /// Waits for one completion of the ring; false when none came until `end`.
  bool take_one(__kernel_timespec* timeout) {
    io_uring_cqe* cqe = nullptr;
    const int status =
        timeout == nullptr ? ::io_uring_wait_cqe(&ring, &cqe) : ::io_uring_wait_cqe_timeout(&ring, &cqe, timeout);
    if (status < 0) return status == -EINTR;
    take(cqe);
    return true;
  }

  void take(io_uring_cqe* cqe) {
    const std::uint64_t what = cqe->user_data;
    const int result = cqe->res;
    ::io_uring_cqe_seen(&ring, cqe);
    if (what == kWoken) {
      listening = false;
    } else {
      reads->arrived(static_cast<std::size_t>(what), result < 0 ? 0 : static_cast<std::size_t>(result));
    }
  }

  /// Puts what was asked for into the ring, as far as there are buffers.
  void start() {
    if (!listening) {
      io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);
      ::io_uring_prep_read(sqe, event, &woken, sizeof woken, 0);
      sqe->user_data = kWoken;
      listening = true;
    }
    while (const std::optional<PieceReads::Piece> piece = reads->next()) {
      io_uring_sqe* sqe = ::io_uring_get_sqe(&ring);  // the ring has more entries than there are buffers
      std::byte* const at = reads->buffers()[piece->buffer].data();
      if (fixed) {
        ::io_uring_prep_read_fixed(sqe, direct.fd, at, piece->size, piece->offset, 0);
      } else {
        ::io_uring_prep_read(sqe, direct.fd, at, piece->size, piece->offset);
      }
      sqe->user_data = piece->buffer;
    }
    ::io_uring_submit(&ring);
  }
};

Result<void*> open(const std::string& where, const SourceOptions&, std::uint64_t& size) {
  auto state = std::make_unique<Uring>();
  QSF_LET(fd, open_regular(where, size));
  state->fd = fd;
  state->direct = reopen_direct(fd);
  if (state->direct.fd < 0) {
    return make_error(ErrorCode::unsupported_host, "{} cannot be read past the page cache", where);
  }
  const int refused = ::io_uring_queue_init(2 * kPieces, &state->ring, 0);
  state->has_ring = refused == 0;
  state->event = ::eventfd(0, EFD_CLOEXEC);
  if (!state->has_ring || (state->ring.features & IORING_FEAT_EXT_ARG) == 0 || state->event < 0) {
    return make_error(ErrorCode::unsupported_host, "this system refuses io_uring");
  }
  Result<AlignedBuffers> buffers = AlignedBuffers::take(kPieces, kPieceBytes);
  if (!buffers) return buffers.error();
  const iovec all{buffers->all().data(), buffers->all().size()};
  // Locked memory may be limited; without registered buffers each read maps its own.
  state->fixed = ::io_uring_register_buffers(&state->ring, &all, 1) == 0;
  state->reads.emplace(fd, size, state->direct.block, std::move(*buffers));
  return static_cast<void*>(state.release());
}

void wake(Uring& s) {
  const std::uint64_t one = 1;
  while (::write(s.event, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void submit(void* state, std::span<const ReadRequest> requests) {
  Uring& s = *static_cast<Uring*>(state);
  bool sleeping;
  {
    const std::lock_guard lock(s.mutex);
    for (const ReadRequest& request : requests) s.asked.push(request);
    sleeping = s.sleeping;
  }
  if (sleeping) wake(s);
}

/// Takes over what was asked for, and says to be asleep when there was nothing.
bool take_asked(Uring& s, bool then_sleep) {
  const std::lock_guard lock(s.mutex);
  const bool any = !s.asked.empty();
  for (; !s.asked.empty(); s.asked.pop()) s.reads->add(s.asked.front());
  s.sleeping = then_sleep && !any;
  return any;
}

std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout) {
  Uring& s = *static_cast<Uring*>(state);
  const Clock::time_point end = Clock::now() + timeout;
  while (true) {
    take_asked(s, false);
    if (s.cancelled) s.reads->cancel();
    s.start();
    for (io_uring_cqe* cqe = nullptr; ::io_uring_peek_cqe(&s.ring, &cqe) == 0;) s.take(cqe);
    if (const std::size_t n = take_completions(s.reads->done(), out); n != 0) return n;
    if (s.cancelled && s.reads->under_way() == 0) return 0;
    const auto left = end - Clock::now();
    if (left <= Clock::duration::zero()) return 0;
    if (take_asked(s, true)) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    __kernel_timespec wait{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
    s.take_one(&wait);
    take_asked(s, false);
  }
}

void cancel(void* state) {
  Uring& s = *static_cast<Uring*>(state);
  s.cancelled = true;
  wake(s);
}

void close(void* state) { delete static_cast<Uring*>(state); }

}  // namespace

extern const SourceKind kUringSource, kDirectSource;
const SourceKind kUringSource{"uring", false,   open,    submit,         reap, cancel,
                              close,   nullptr, nullptr, &kDirectSource, true};

}  // namespace qsf
