// A whole file in the address space, for reading, and the treatment of its pages when they can no longer be read.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "qsf/base/result.h"

namespace qsf {

/// Pages that the file no longer has, because it became shorter or its storage failed, read as zeros instead of ending
/// the program (SIGBUS), and lost() is true until renew(). The first mapping installs a handler of that signal for the
/// process, which passes on signals about anything else.
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
  /// Maps the whole file again, at the same address.
  Status renew(int fd);

 private:
  MappedFile(std::span<const std::byte> bytes, std::size_t guard) : bytes_(bytes), guard_(guard) {}

  std::span<const std::byte> bytes_;
  std::size_t guard_;
};

/// Requests all pages of mapped bytes and their entries at once; page by page they take several times as long. Does
/// nothing after the file's end.
void populate(std::span<const std::byte> mapped);
/// Releases the entries of whole pages, so that they do not count towards the process.
void forget(std::span<const std::byte> mapped);

/// Copies mapped bytes as far as their pages exist. Returns their number, -1 if the system cannot copy. The system
/// copies, because it stops at a page after the file's end, where a copy by the program would be a SIGBUS.
ssize_t copy_mapped(const std::byte* from, std::span<std::byte> to);

}  // namespace qsf
