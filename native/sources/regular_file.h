// Opening and reading of regular files, for every source of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "qsf/base/result.h"
#include "qsf/stream/read_request.h"
#include "system/past_cache.h"

namespace qsf {

/// A descriptor that the destructor closes; -1 for none.
class OpenFile {
 public:
  explicit OpenFile(int fd = -1) : fd_(fd) {}
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OpenFile();
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// Opens a file and sets `size`. Errors: io_error for anything but a regular file, truncated for an empty one.
Result<OpenFile> open_regular(const std::string& where, std::uint64_t& size);
/// Returns io_error, or out_of_memory, with the text of errno: "cannot read the model file: ...".
Error system_error(const char* doing, const char* what);
/// Returns truncated: the file was longer at opening.
Error ended(std::uint64_t at);
/// Reads at least one byte at `at`, blocking.
Result<std::size_t> read_some(int fd, std::uint64_t at, std::span<std::byte> into);
/// Fills `into`.
Status read_all(int fd, std::uint64_t at, std::span<std::byte> into);

/// Returns the memory into which the request's whole blocks can be read in place. Empty unless the request allows it,
/// and its memory and its bytes in the file begin equally far into a block.
std::span<std::byte> whole_blocks(const ReadRequest& request, std::uint32_t block);

}  // namespace qsf
