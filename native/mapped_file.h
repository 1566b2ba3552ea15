// A whole file in the address space, for reading, and what becomes of its pages when they can no longer be had.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/result.h"

namespace qsf {

/// Pages that the file has no longer, since it became shorter or its storage failed, read as zeros, where by themselves
/// they would end the program (SIGBUS): then lost() says so until renew(). The first one installs a handler of that
/// signal for the process, which passes on what is not about such pages.
class MappedFile {
 public:
  /// `fd` may be closed afterwards. Errors: io_error, out_of_memory (more than kMost at a time).
  static Result<MappedFile> map(int fd, std::uint64_t size);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  static constexpr std::size_t kMost = 64;

  std::span<const std::byte> bytes() const { return bytes_; }
  bool lost() const;
  /// Maps all of the same file again, in the same place.
  Status renew(int fd);

 private:
  MappedFile(std::span<const std::byte> bytes, std::size_t guard) : bytes_(bytes), guard_(guard) {}

  std::span<const std::byte> bytes_;
  std::size_t guard_;
};

/// Asks for all of a mapped file's pages at once, and for their entries: page by page they take several times as long.
/// Behind the file's end it does nothing.
void populate(std::span<const std::byte> mapped);
/// Lets go of the pages' entries, so that they do not count towards the process; of whole pages only.
void forget(std::span<const std::byte> mapped);

/// Copies from mapped pages as far as there still are any, and gives how many bytes; -1 where the system cannot. The
/// system copies: it stops at a page behind the file's end, where a copy by the program would be a SIGBUS.
ssize_t copy_mapped(const std::byte* from, std::span<std::byte> to);

}  // namespace qsf
