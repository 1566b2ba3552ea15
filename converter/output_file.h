// A file that is there whole or not at all: written under another name beside it and renamed at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qsf/base/result.h"

namespace qsf::convert {

class OutputFile {
 public:
  /// Makes `path`.tmp. io_error when that is not possible.
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes the .tmp file unless commit() was called.
  ~OutputFile();

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// To the disk.
  Status flush();
  /// Gives the file its name.
  Status commit();

 private:
  OutputFile(std::string path, int fd);
  std::string temporary() const { return path_ + ".tmp"; }

  std::string path_;
  int fd_ = -1;
};

}  // namespace qsf::convert
