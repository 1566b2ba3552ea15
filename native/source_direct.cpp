// Files past the page cache by threads that wait: where there is no io_uring.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "native/piece_reads.h"
#include "native/read_thread.h"
#include "native/regular_file.h"
#include "native/source.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf {
namespace {

constexpr std::size_t kReaders = 2;  // a ReadThread's

struct Direct {
  int fd;
  std::uint64_t size;  // when it was opened
  DirectFile file;
  AlignedBuffers buffers;
  std::array<std::atomic_flag, kReaders> taken;
  ReadThread thread;

  Direct(int open_fd, std::uint64_t bytes, DirectFile direct, AlignedBuffers memory, ReadThread::Read read, bool helped)
      : fd(open_fd),
        size(bytes),
        file(direct),
        buffers(std::move(memory)),
        thread(read, cached, nullptr, this, helped) {}
  static bool cached(void* state, const ReadRequest& r) {
    return is_cached(static_cast<Direct*>(state)->fd, r.offset, r.size);
  }
};

/// Whole blocks to where they are wanted. What does not come is read by way of the page cache.
Status read_in_place(Direct& s, const ReadRequest& request, std::span<std::byte> blocks) {
  const auto before = static_cast<std::size_t>(request.into - blocks.data());
  const std::ptrdiff_t got = sys::read_at(s.file.fd, request.offset - before, blocks);
  const std::size_t there =
      got < 0 ? 0 : std::min<std::size_t>(std::max<std::size_t>(got, before) - before, request.size);
  return read_all(s.fd, request.offset + there, {request.into + there, request.size - there});
}

/// Whole blocks into a buffer, and from there what was asked for. What cannot be read so is read by way of the page
/// cache, which either works or says what is wrong.
Status read_past(Direct& s, const ReadRequest& request, std::span<std::byte> buffer,
                 const std::atomic<bool>& cancelled) {
  const std::uint64_t block = s.file.block;
  std::uint64_t at = request.offset;
  for (std::span<std::byte> left(request.into, request.size); !left.empty();) {
    if (cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
    const std::uint64_t begin = at / block * block;
    const std::uint64_t whole = (at + left.size() + block - 1) / block * block - begin;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(whole, buffer.size() / block * block));
    const std::ptrdiff_t got = sys::read_at(s.file.fd, begin, buffer.first(size));
    const auto skip = static_cast<std::size_t>(at - begin);
    if (got < 0 || static_cast<std::size_t>(got) <= skip) return read_all(s.fd, at, left);
    const std::size_t n = std::min(static_cast<std::size_t>(got) - skip, left.size());
    std::memcpy(left.data(), buffer.data() + skip, n);
    at += n;
    left = left.subspan(n);
  }
  return {};
}

Status read(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  Direct& s = *static_cast<Direct*>(state);
  QSF_TRY(check_range(request, s.size));
  if (Direct::cached(&s, request)) {
    return read_all(s.fd, request.offset, {request.into, request.size});
  }
  if (const auto blocks = whole_blocks(request, s.file.block); !blocks.empty())
    return read_in_place(s, request, blocks);
  for (std::size_t i = 0; i < kReaders; ++i) {
    if (s.taken[i].test_and_set(std::memory_order_acquire)) continue;
    const Status status = read_past(s, request, s.buffers[i], cancelled);
    s.taken[i].clear(std::memory_order_release);
    return status;
  }
  return read_all(s.fd, request.offset, {request.into, request.size});
}

Result<void*> open(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  QSF_LET(fd, open_regular(where, size));
  const DirectFile file = reopen_direct(fd);
  Result<AlignedBuffers> buffers = AlignedBuffers::take(kReaders, kPieceBytes);
  if (file.fd >= 0 && buffers) {
    return static_cast<void*>(new Direct(fd, size, file, std::move(*buffers), read, options.helped));
  }
  sys::close_file(fd);
  if (file.fd >= 0) sys::close_file(file.fd);
  if (!buffers) return buffers.error();
  return make_error(ErrorCode::unsupported_host, "{} cannot be read past the page cache", where);
}

void submit(void* state, std::span<const ReadRequest> requests) {
  static_cast<Direct*>(state)->thread.submit(requests);
}

std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout) {
  return static_cast<Direct*>(state)->thread.reap(out, timeout);
}

Helped read_cached(void* state, Completion& out) { return static_cast<Direct*>(state)->thread.read_cached(out); }

std::size_t at_hand(void* state) { return static_cast<Direct*>(state)->thread.at_hand(); }

void cancel(void* state) { static_cast<Direct*>(state)->thread.cancel(); }

void close(void* state) {
  auto* direct = static_cast<Direct*>(state);
  const std::array files{direct->fd, direct->file.fd};
  delete direct;  // ends the thread that reads
  for (const int fd : files) sys::close_file(fd);
}

}  // namespace

extern const SourceKind kDirectSource, kPreadSource;
const SourceKind kDirectSource{"direct", false,       open,    submit,        reap, cancel,
                               close,    read_cached, at_hand, &kPreadSource, true};

}  // namespace qsf
