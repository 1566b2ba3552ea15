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
  /// Makes a new file in the folder of `path`, under a name that nobody can foretell. io_error when that is not
  /// possible or when there is something at `path` that is not a regular file.
  static Result<OutputFile> create(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was written unless commit() gave it its name.
  ~OutputFile();

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// To the disk.
  Status flush();
  /// Gives the file its name, in place of an earlier one.
  Status commit();

 private:
  OutputFile(std::string path, std::string temporary, int fd);

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace qsf::convert
