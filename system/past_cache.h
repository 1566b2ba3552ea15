// The system's page cache: reading past it, and what it holds.
#pragma once

#include <cstdint>

namespace qsf {

/// How a file may be read past the page cache.
struct DirectFile {
  int fd = -1;              // for reads past the page cache; -1 where the system or its file system refuses it
  std::uint32_t block = 0;  // what offsets, sizes and memory are multiples of
};
/// A second descriptor of the same file.
DirectFile reopen_direct(int fd);

/// Whether all pages of these bytes are in the page cache; false where the system does not tell.
bool is_cached(int fd, std::uint64_t at, std::uint64_t size);
/// Has the system read these bytes into the page cache, without waiting for them.
void fetch_ahead(int fd, std::uint64_t at, std::uint64_t size);
/// Lets the page cache drop these bytes' pages, but for those that they share with others.
void give_back(int fd, std::uint64_t at, std::uint64_t size);

}  // namespace qsf
