#include "native/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "qsf/base/try.h"

#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace qsf {
namespace {

/// Empty for a regular file.
std::string_view other_than_file(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Error system_error(const char* doing, const char* what) {
  return make_error(ErrorCode::io_error, "{} {}: {}", doing, what, std::strerror(errno));
}

Error ended(std::uint64_t at) {
  return make_error(ErrorCode::truncated, "the file now ends before byte {}: it was cut while it was read", at);
}

Result<int> open_regular(const std::string& where, std::uint64_t& size) {
  // Looked at before it is opened, since opening a device may do something; without O_NONBLOCK a pipe that takes the
  // file's place in between would wait for a writer.
  struct stat status{};
  if (::stat(where.c_str(), &status) != 0) return system_error("cannot open", where.c_str());
  const int fd = S_ISREG(status.st_mode) ? ::open(where.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
  if (S_ISREG(status.st_mode) && (fd < 0 || ::fstat(fd, &status) != 0)) {
    const Error error = system_error("cannot open", where.c_str());
    if (fd >= 0) ::close(fd);
    return error;
  }
  const std::string_view other = other_than_file(status.st_mode);
  size = static_cast<std::uint64_t>(status.st_size);
  if (other.empty() && size != 0) return fd;
  if (fd >= 0) ::close(fd);
  if (other.empty()) return make_error(ErrorCode::truncated, "{} is empty", where);
  return make_error(ErrorCode::io_error, "cannot open {}: it is {}, not a regular file", where, other);
}

Result<std::size_t> read_some(int fd, std::uint64_t at, std::span<std::byte> into) {
  ssize_t n;
  do {
    n = ::pread(fd, into.data(), into.size(), static_cast<off_t>(at));
  } while (n < 0 && errno == EINTR);
  if (n < 0) return system_error("cannot read", "the model file");
  if (n == 0) return ended(at + into.size());
  return static_cast<std::size_t>(n);
}

Status read_all(int fd, std::uint64_t at, std::span<std::byte> into) {
  while (!into.empty()) {
    QSF_LET(n, read_some(fd, at, into));
    at += n;
    into = into.subspan(n);
  }
  return {};
}

#if defined(__linux__) && defined(STATX_DIOALIGN)

DirectFile reopen_direct(int fd) {
  constexpr std::uint32_t kWidest = 4096;  // what buffers are aligned to
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return {};
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_offset_align == 0) return {};
  const std::uint32_t block = std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
  if (block > kWidest || !std::has_single_bit(block)) return {};
  // By way of the descriptor, so that it is the same file whatever its name stands for now.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return {::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT), kWidest};
}

#else

DirectFile reopen_direct(int) { return {}; }

#endif

#ifdef __linux__

bool is_cached(int fd, std::uint64_t at, std::uint64_t size) {
  constexpr long kCachestat = 451;  // the same on every processor; older headers do not name it
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  struct {
    std::uint64_t offset, length;
  } range{at / page * page, 0};
  range.length = (at + size + page - 1) / page * page - range.offset;
  struct {
    std::uint64_t cached, dirty, written_back, evicted, recently_evicted;
  } counts{};
  return ::syscall(kCachestat, fd, &range, &counts, 0u) == 0 && counts.cached * page >= range.length;
}

void fetch_ahead(int fd, std::uint64_t at, std::uint64_t size) {
  ::posix_fadvise(fd, static_cast<off_t>(at), static_cast<off_t>(size), POSIX_FADV_WILLNEED);
}

void give_back(int fd, std::uint64_t at, std::uint64_t size) {
  ::posix_fadvise(fd, static_cast<off_t>(at), static_cast<off_t>(size), POSIX_FADV_DONTNEED);
}

#else

bool is_cached(int, std::uint64_t, std::uint64_t) { return false; }
void fetch_ahead(int, std::uint64_t, std::uint64_t) {}
void give_back(int, std::uint64_t, std::uint64_t) {}

#endif

}  // namespace qsf
