// A file's bytes, mapped for reading: inputs larger than memory are read page by page.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::convert {

class MappedFile {
 public:
  /// io_error when the path is not a regular file that can be read.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// The address stays the same when the object is moved.
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  MappedFile() = default;
  std::span<const std::byte> bytes_;
};

/// Whether there is a regular file at `path`.
bool is_file(const std::string& path);

}  // namespace qsf::convert
