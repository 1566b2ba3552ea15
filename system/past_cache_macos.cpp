#include <fcntl.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>

#include "qsf/base/align.h"
#include "system/past_cache.h"

namespace qsf {

DirectFile reopen_direct(int fd) {
  std::array<char, MAXPATHLEN> path{};
  struct stat before{}, after{};
  if (::fcntl(fd, F_GETPATH, path.data()) != 0 || ::fstat(fd, &before) != 0) return {};
  const int direct = ::open(path.data(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (direct < 0) return {};
  // The name may belong to another file by now.
  const bool same = ::fstat(direct, &after) == 0 && before.st_dev == after.st_dev && before.st_ino == after.st_ino;
  if (same && ::fcntl(direct, F_NOCACHE, 1) == 0) return {direct, kBlock};
  ::close(direct);
  return {};
}

bool is_cached(int, std::uint64_t, std::uint64_t) { return false; }

void fetch_ahead(int fd, std::uint64_t at, std::uint64_t size) {
  radvisory ahead{};
  ahead.ra_offset = static_cast<off_t>(at);
  ahead.ra_count = static_cast<int>(std::min<std::uint64_t>(size, std::numeric_limits<int>::max()));
  ::fcntl(fd, F_RDADVISE, &ahead);
}

void give_back(int, std::uint64_t, std::uint64_t) {}

}  // namespace qsf
