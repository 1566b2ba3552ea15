// Files: pread, and mmap through a small window so that the file's pages never count towards the process for long. The
// system is told what is read soon; where memory has no room for the file, also what was read and is not needed, so
// that it need not look for pages to give up.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "native/mapped_copy.h"
#include "native/memory_room.h"
#include "native/read_thread.h"
#include "native/regular_file.h"
#include "native/source.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

struct File {
  int fd;
  std::uint64_t size;  // when it was opened
  bool drops;          // what was read
  ReadThread thread;

  File(int file, std::uint64_t bytes, bool behind, ReadThread::Read read, bool helped)
      : fd(file), size(bytes), drops(behind), thread(read, cached, ahead, this, helped) {}
  static void ahead(void* file, const ReadRequest& r) { fetch_ahead(static_cast<File*>(file)->fd, r.offset, r.size); }
  static bool cached(void* file, const ReadRequest& r) {
    return is_cached(static_cast<File*>(file)->fd, r.offset, r.size);
  }
};

template <ReadThread::Read kRead>
Result<void*> open_file(const std::string& where, const SourceOptions& options, std::uint64_t& size) {
  QSF_LET(fd, open_regular(where, size));
  const bool drops = memory_room() < options.beside + size;
  return static_cast<void*>(new File(fd, size, drops, kRead, options.helped));
}

void submit(void* state, std::span<const ReadRequest> requests) { static_cast<File*>(state)->thread.submit(requests); }

std::size_t reap(void* state, std::span<Completion> out, std::chrono::milliseconds timeout) {
  return static_cast<File*>(state)->thread.reap(out, timeout);
}

Helped read_cached(void* state, Completion& out) { return static_cast<File*>(state)->thread.read_cached(out); }

std::size_t at_hand(void* state) { return static_cast<File*>(state)->thread.at_hand(); }

void cancel(void* state) { static_cast<File*>(state)->thread.cancel(); }

void close(void* state) {
  auto* file = static_cast<File*>(state);
  const int fd = file->fd;
  delete file;  // ends the thread that reads
  ::close(fd);
}

/// Fills the request's memory, at most `step` bytes at a time.
template <class ReadSome>
Status read_steps(const File& file, const ReadRequest& request, const std::atomic<bool>& cancelled, std::size_t step,
                  const ReadSome& read_some) {
  QSF_TRY(check_range(request, file.size));
  std::uint64_t offset = request.offset;
  for (std::span<std::byte> left(request.into, request.size); !left.empty();) {
    if (cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
    const Result<std::size_t> n = read_some(offset, left.first(std::min(left.size(), step)));
    if (!n) return n.error();
    offset += *n;
    left = left.subspan(*n);
  }
  if (file.drops) give_back(file.fd, request.offset, request.size);
  return {};
}

Status read_pread(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const File& file = *static_cast<File*>(state);
  return read_steps(file, request, cancelled, 1u << 20,
                    [&](std::uint64_t at, std::span<std::byte> into) { return read_some(file.fd, at, into); });
}

Status read_mmap(void* state, const ReadRequest& request, const std::atomic<bool>& cancelled) {
  const File& file = *static_cast<File*>(state);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return read_steps(file, request, cancelled, 512u << 10,
                    [&](std::uint64_t at, std::span<std::byte> into) -> Result<std::size_t> {
                      // The rest of the last page of a file that became shorter is readable and zero.
                      struct stat status{};
                      if (::fstat(file.fd, &status) != 0) return system_error("cannot read", "the model file");
                      if (static_cast<std::uint64_t>(status.st_size) < at + into.size()) return ended(at + into.size());
                      const std::uint64_t begin = at / page * page;
                      const auto length = static_cast<std::size_t>(at - begin) + into.size();
                      void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.fd, static_cast<off_t>(begin));
                      if (window == MAP_FAILED) return system_error("cannot map", "the model file");
                      populate({static_cast<std::byte*>(window), length});
                      const ssize_t n = copy_mapped(static_cast<std::byte*>(window) + (at - begin), into);
                      ::munmap(window, length);
                      if (n < 0) return read_some(file.fd, at, into);
                      if (n == 0) return ended(at + into.size());
                      return static_cast<std::size_t>(n);
                    });
}

}  // namespace

void populate(std::span<std::byte> mapped) {
  ::madvise(mapped.data(), mapped.size(), MADV_WILLNEED);
#ifdef __linux__
  constexpr int kPopulateRead = 22;  // not in older headers; refused by older systems
  ::madvise(mapped.data(), mapped.size(), kPopulateRead);
#endif
}

ssize_t copy_mapped(const std::byte* from, std::span<std::byte> to) {
#ifdef __linux__
  const iovec local{to.data(), to.size()}, remote{const_cast<std::byte*>(from), to.size()};
  const ssize_t n = ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0);
  return n < 0 && errno == EFAULT ? 0 : n;
#else
  (void)from, (void)to;
  return -1;
#endif
}

extern const SourceKind kPreadSource, kMmapSource;
const SourceKind kPreadSource{"pread", false, open_file<read_pread>, submit, reap, cancel, close, read_cached, at_hand};
const SourceKind kMmapSource{"mmap", false, open_file<read_mmap>, submit, reap, cancel, close, read_cached, at_hand};

}  // namespace qsf
