// The converter's output: a file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "qsf/base/result.h"
#include "system/new_file.h"

namespace qsf::convert {

class OutputFile {
 public:
  /// Creates a file for `path` (see sys::NewFile). Returns io_error if that fails, or if `path` exists and does not
  /// lead to a regular file.
  static Result<OutputFile> create(const std::string& path);

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Writes the data to the disk.
  Status flush();
  /// Gives the file its name, in place of an earlier file.
  Status commit();

 private:
  explicit OutputFile(sys::NewFile file) : file_(std::move(file)) {}

  sys::NewFile file_;
};

}  // namespace qsf::convert
