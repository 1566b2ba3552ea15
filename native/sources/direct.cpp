// Reads of files past the page cache by threads that wait, for systems without io_uring.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "native/sources/piece_reads.h"
#include "native/sources/read_thread.h"
#include "native/sources/regular_file.h"
#include "native/sources/source.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf {
namespace {

constexpr std::size_t kReaders = 2;  // the threads of a ReadThread

struct Direct {
  OpenFile cached_file;  // through the page cache
  OpenFile direct_file;
  std::uint64_t size;  // at opening
  std::uint32_t block;
  AlignedBuffers buffers;
  std::array<std::atomic_flag, kReaders> taken;
  ReadThread thread;

  Direct(OpenFile file, OpenFile direct, std::uint64_t bytes, std::uint32_t block_size, AlignedBuffers memory,
         ReadThread::Read read, bool helped)
      : cached_file(std::move(file)),
        direct_file(std::move(direct)),
        size(bytes),
        block(block_size),
        buffers(std::move(memory)),
        thread(read, cached, nullptr, this, helped) {}
  int fd() const { return cached_file.fd(); }
  static bool cached(void* state, const ReadRequest& r) {
    return is_cached(static_cast<Direct*>(state)->fd(), r.offset, r.size);
  }
};

/// Reads whole blocks in place. Missing bytes are read through the page cache.
Status read_in_place(Direct& s, const ReadRequest& request, std::span<std::byte> blocks) {
  const auto before = static_cast<std::size_t>(request.into - blocks.data());
  const std::ptrdiff_t got = sys::read_at(s.direct_file.fd(), request.offset - before, blocks);
  const std::size_t there =
      got < 0 ? 0 : std::min<std::size_t>(std::max<std::size_t>(got, before) - before, request.size);
  return read_all(s.fd(), request.offset + there, {request.into + there, request.size - there});
}

/// Reads whole blocks into a buffer and copies the requested bytes. Bytes that cannot be read so are read through the
/// page cache, which either works or gives the error.
Status read_past(Direct& s, const ReadRequest& request, std::span<std::byte> buffer,
                 const std::atomic<bool>& cancelled) {
  const std::uint64_t block = s.block;
  std::uint64_t at = request.offset;
  for (std::span<std::byte> left(request.into, request.size); !left.empty();) {
    if (cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
    const std::uint64_t begin = at / block * block;
    const std::uint64_t whole = (at + left.size() + block - 1) / block * block - begin;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(whole, buffer.size() / block * block));
    const std::ptrdiff_t got = sys::read_at(s.direct_file.fd(), begin, buffer.first(size));
    const auto skip = static_cast<std::size_t>(at - begin);
    if (got < 0 || static_cast<std::size_t>(got) <= skip) return read_all(s.fd(), at, left);
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
    return read_all(s.fd(), request.offset, {request.into, request.size});
  }
  if (const auto blocks = whole_blocks(request, s.block); !blocks.empty()) return read_in_place(s, request, blocks);
  for (std::size_t i = 0; i < kReaders; ++i) {
    if (s.taken[i].test_and_set(std::memory_order_acquire)) continue;
    const Status status = read_past(s, request, s.buffers[i], cancelled);
    s.taken[i].clear(std::memory_order_release);
    return status;
  }
  return read_all(s.fd(), request.offset, {request.into, request.size});
}

Result<void*> open(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  QSF_LET(file, open_regular(where, size));
  const DirectFile reopened = reopen_direct(file.fd());
  OpenFile direct(reopened.fd);
  QSF_LET(buffers, AlignedBuffers::take(kReaders, kPieceBytes));
  if (direct.fd() < 0) {
    return make_error(ErrorCode::unsupported_host, "{} cannot be read past the page cache", where);
  }
  return static_cast<void*>(
      new Direct(std::move(file), std::move(direct), size, reopened.block, std::move(buffers), read, options.helped));
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

void close(void* state) { delete static_cast<Direct*>(state); }

}  // namespace

extern const SourceKind kDirectSource, kPreadSource;
const SourceKind kDirectSource{"direct", false,       open,    submit,        reap, cancel,
                               close,    read_cached, at_hand, &kPreadSource, true};

}  // namespace qsf
