// Regular files as inputs, by pread. Who opens them remembers which they are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "converter/input.h"
#include "qsf/base/result.h"

namespace qsf::convert {

class LocalFile;

/// The files that a conversion reads.
class LocalFiles {
 public:
  /// io_error when there is no such file, when it cannot be read or is not a regular file (a FIFO or a device is never
  /// waited for).
  Result<Input> open(const std::string& path);
  /// Empty when there is nothing at `path`, not even an unreadable file.
  Result<std::optional<Input>> find(const std::string& path);

  /// Whether `path` leads to one of them, by whatever name or link.
  bool contain(const std::string& path) const;
  /// file_changed, naming it, when one of them has another size or date than when it was opened.
  Status unchanged() const;

 private:
  std::vector<std::shared_ptr<const LocalFile>> files_;
};

/// A file or folder, which is read through `files`. io_error when there is nothing that can be read.
Result<ModelPlace> local_place(const std::string& path, const std::shared_ptr<LocalFiles>& files);

}  // namespace qsf::convert
