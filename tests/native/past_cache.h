// Files and requests as the tests of reading past the page cache have them.
#pragma once

#include <string>
#include <vector>

#include "native/temp.h"
#include "qsf/base/align.h"
#include "qsf/stream/read_request.h"
#include "system/file.h"
#include "system/past_cache.h"

namespace qsf::test {

/// Of a file that is not in the page cache, as far as the system does as it is told.
inline void drop_cached(int fd) {
  sys::flush_file(fd);
  constexpr std::uint64_t kToTheEnd = 0;
  give_back(fd, 0, kToTheEnd);
}

inline ReadRequest request(std::uint64_t offset, std::uint32_t size, std::uint32_t ticket, std::byte* into) {
  ReadRequest r;
  r.offset = offset;
  r.size = size;
  r.ticket = ticket;
  r.into = into;
  return r;
}

/// A place in memory that lies `beside` bytes behind where the request's bytes lie within a block of the file, with
/// whole blocks round it.
inline std::byte* placed(std::vector<std::byte>& memory, const ReadRequest& r, std::uint64_t beside) {
  memory.resize(r.size + 4 * kBlock);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) + kBlock;
  return memory.data() + kBlock + (r.offset + beside - begin) % kBlock;
}

struct SomeFile {
  const TempDir dir;
  const std::string path = dir / "file";
  const std::vector<std::byte> content = some_bytes(2'500'000);
  int fd = -1;

  SomeFile() {
    write_bytes(path, content);
    fd = sys::open_file(path);
  }
  SomeFile(const SomeFile&) = delete;
  SomeFile& operator=(const SomeFile&) = delete;
  ~SomeFile() { sys::close_file(fd); }
};

}  // namespace qsf::test
