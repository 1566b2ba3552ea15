// A file that appears whole or not at all: until the end it has a temporary name in the same folder.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "system/unfinished.h"

namespace qsf::sys {

class NewFile {
 public:
  NewFile() = default;
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::move(other.temporary_)), file_(std::exchange(other.file_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  /// Removes the temporary file unless commit() succeeded.
  ~NewFile();

  /// Creates a temporary file in the folder of `path`, or in the folder of the regular file that a link at `path` leads
  /// to. Its name cannot be predicted, and it gets the permissions of the file that it will replace. Sets errno and
  /// returns no file if that fails.
  static NewFile create(const std::string& path);
  explicit operator bool() const { return file_ >= 0; }

  /// Returns the path of its place, with links followed.
  const std::string& path() const { return path_; }
  int file() const { return file_; }
  /// Writes all bytes at the end of the previous write. A signal does not end it. Returns false and sets errno if not
  /// all of them were written.
  bool write(std::span<const std::byte> bytes) const;
  /// Closes the file and gives it its name, in place of an earlier file.
  bool commit();

 private:
  NewFile(std::string path, std::string temporary, int file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

  std::string path_;
  Unfinished temporary_;
  int file_ = -1;
};

}  // namespace qsf::sys
