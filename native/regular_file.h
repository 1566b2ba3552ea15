// Regular files, as every source of files opens and reads them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"

namespace qsf {

/// An open descriptor; `size` is set. Errors: io_error for what is not a regular file, truncated for an empty one.
Result<int> open_regular(const std::string& where, std::uint64_t& size);
/// io_error with what errno says: "cannot read the model file: ...".
Error system_error(const char* doing, const char* what);
/// truncated: the file was longer when it was opened.
Error ended(std::uint64_t at);
/// Reads at least one byte at `at`, blocking.
Result<std::size_t> read_some(int fd, std::uint64_t at, std::span<std::byte> into);
/// Fills `into`.
Status read_all(int fd, std::uint64_t at, std::span<std::byte> into);

/// How a file may be read past the page cache.
struct DirectFile {
  int fd = -1;              // with O_DIRECT; -1 where the file system refuses it
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
