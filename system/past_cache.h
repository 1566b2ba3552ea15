// Reads past the system's page cache, and the contents of the page cache.
#pragma once

#include <cstdint>

namespace qsf {

/// A file opened for reads past the page cache.
struct DirectFile {
  int fd = -1;              // -1 if the system or its file system refuses such reads
  std::uint32_t block = 0;  // offsets, sizes and memory must be multiples of it
};
/// Returns a second descriptor of the same file.
DirectFile reopen_direct(int fd);

/// Whether all pages of these bytes are in the page cache; false if the system does not report it.
bool is_cached(int fd, std::uint64_t at, std::uint64_t size);
/// Starts reading these bytes into the page cache. Does not wait.
void fetch_ahead(int fd, std::uint64_t at, std::uint64_t size);
/// Drops these bytes' pages from the page cache, except pages that they share with other bytes.
void give_back(int fd, std::uint64_t at, std::uint64_t size);

}  // namespace qsf
