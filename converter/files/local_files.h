// Regular files as inputs, read by pread, with their identity.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/files/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

class LocalFile;

/// The files that one conversion reads.
class LocalFiles {
 public:
  /// Opens a file. Returns io_error if it does not exist, cannot be read or is not a regular file. Never waits for a
  /// FIFO or a device.
  Result<Input> open(const std::string& path);
  /// Empty if nothing is at `path`, not even an unreadable file.
  Result<std::optional<Input>> find(const std::string& path);

  /// Returns whether `path` leads to one of the files, by any name or link.
  bool contain(const std::string& path) const;
  /// Returns file_changed, with the file's name, if the size or date of one of them has changed since it was opened.
  Status unchanged() const;

 private:
  std::vector<std::shared_ptr<const LocalFile>> files_;
};

/// Returns the file or folder at `path`, to be read through `files`. Returns io_error if nothing there can be read.
Result<ModelPlace> local_place(const std::string& path, const std::shared_ptr<LocalFiles>& files);

}  // namespace qsf::convert
