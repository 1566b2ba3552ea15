#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

#include "qsf/base/align.h"
#include "system/past_cache.h"

namespace qsf {

#ifdef STATX_DIOALIGN

DirectFile reopen_direct(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) != 0) return {};
  if ((status.stx_mask & STATX_DIOALIGN) == 0 || status.stx_dio_offset_align == 0) return {};
  const std::uint32_t block = std::max(status.stx_dio_offset_align, status.stx_dio_mem_align);
  if (block > kBlock || !std::has_single_bit(block)) return {};
  // The path through the descriptor opens the same file even if its name now belongs to another one.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return {::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT), kBlock};
}

#else  // these headers do not report the needs of direct reads

DirectFile reopen_direct(int) { return {}; }

#endif

bool is_cached(int fd, std::uint64_t at, std::uint64_t size) {
  constexpr long kCachestat = 451;  // the same on every processor; older headers lack it
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

}  // namespace qsf
