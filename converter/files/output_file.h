// A file that appears complete or not at all: it has a temporary name in the same folder until the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qsf/base/result.h"
#include "system/unfinished.h"

namespace qsf::convert {

class OutputFile {
 public:
  /// Creates a temporary file in the folder of `path`, or in the folder of the file that a link at `path` leads to. Its
  /// name cannot be predicted, and it gets the permissions of the file that it will replace. Returns io_error if that
  /// fails, or if `path` exists and does not lead to a regular file.
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes the temporary file unless commit() succeeded.
  ~OutputFile();

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Writes the data to the disk.
  Status flush();
  /// Gives the file its name, in place of an earlier file.
  Status commit();

 private:
  OutputFile(std::string path, sys::Unfinished temporary, int fd);

  std::string path_;
  sys::Unfinished temporary_;
  int fd_ = -1;
};

}  // namespace qsf::convert
