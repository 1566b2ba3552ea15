// Files: pread, and mmap through a small window so that the file's pages never count towards the process for long.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "native/source.h"

namespace qsf {
namespace {

struct File {
  int fd;
  std::atomic<bool> cancelled{false};
};

Error system_error(const char* doing, const char* what) {
  return make_error(ErrorCode::io_error, "{} {}: {}", doing, what, std::strerror(errno));
}

Result<void*> open_file(const std::string& where, const SourceOptions&, std::uint64_t& size) {
  const int fd = ::open(where.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("cannot open", where.c_str());
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return make_error(ErrorCode::io_error, "cannot open {}: it is not a regular file", where);
  }
  size = static_cast<std::uint64_t>(status.st_size);
  if (size == 0) {
    ::close(fd);
    return make_error(ErrorCode::truncated, "{} is empty", where);
  }
  auto* file = new (std::nothrow) File{fd};
  if (file == nullptr) {
    ::close(fd);
    return make_error(ErrorCode::out_of_memory, "no memory to open {}", where);
  }
  return static_cast<void*>(file);
}

void close_file(void* state) {
  auto* file = static_cast<File*>(state);
  ::close(file->fd);
  delete file;
}

void cancel_file(void* state) { static_cast<File*>(state)->cancelled = true; }

Error ended(std::uint64_t at) {
  return make_error(ErrorCode::truncated, "the file now ends before byte {}: it was cut while it was read", at);
}

/// Fills every piece, at most `step` bytes at a time.
template <class ReadSome>
Status read_pieces(const File& file, std::uint64_t offset, Pieces into, std::size_t step, const ReadSome& read_some) {
  for (std::span<std::byte> piece : into) {
    while (!piece.empty()) {
      if (file.cancelled) return make_error(ErrorCode::cancelled, "reading was cancelled");
      const Result<std::size_t> n = read_some(offset, piece.first(std::min(piece.size(), step)));
      if (!n) return n.error();
      offset += *n;
      piece = piece.subspan(*n);
    }
  }
  return {};
}

Status read_pread(void* state, std::uint64_t offset, Pieces into) {
  const File& file = *static_cast<File*>(state);
  return read_pieces(file, offset, into, 1u << 20,
                     [&](std::uint64_t at, std::span<std::byte> some) -> Result<std::size_t> {
                       ssize_t n;
                       do {
                         n = ::pread(file.fd, some.data(), some.size(), static_cast<off_t>(at));
                       } while (n < 0 && errno == EINTR);
                       if (n < 0) return system_error("cannot read", "the model file");
                       if (n == 0) return ended(at + some.size());
                       return static_cast<std::size_t>(n);
                     });
}

Status read_mmap(void* state, std::uint64_t offset, Pieces into) {
  const File& file = *static_cast<File*>(state);
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return read_pieces(
      file, offset, into, 512u << 10, [&](std::uint64_t at, std::span<std::byte> some) -> Result<std::size_t> {
        // A page behind the file's end would be a SIGBUS, so its size is asked for before every window.
        struct stat status{};
        if (::fstat(file.fd, &status) != 0) return system_error("cannot read", "the model file");
        if (static_cast<std::uint64_t>(status.st_size) < at + some.size()) return ended(at + some.size());
        const std::uint64_t begin = at / page * page;
        const auto length = static_cast<std::size_t>(at - begin) + some.size();
        void* window = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file.fd, static_cast<off_t>(begin));
        if (window == MAP_FAILED) return system_error("cannot map", "the model file");
        ::madvise(window, length, MADV_SEQUENTIAL);
        std::memcpy(some.data(), static_cast<std::byte*>(window) + (at - begin), some.size());
        ::munmap(window, length);
        return some.size();
      });
}

}  // namespace

extern const SourceKind kPreadSource, kMmapSource;
const SourceKind kPreadSource{"pread", false, 0, open_file, read_pread, cancel_file, close_file};
const SourceKind kMmapSource{"mmap", false, 0, open_file, read_mmap, cancel_file, close_file};

}  // namespace qsf
