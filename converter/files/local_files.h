// Regular files as inputs, read by pread, with their identity.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converter/files/input.h"
#include "qsf/base/result.h"
#include "system/file.h"

namespace qsf::convert {

class LocalFile;

/// The files that one conversion reads, numbered from 0 in the order of opening.
class LocalFiles {
 public:
  LocalFiles() = default;
  /// Passes every input through `wrap`.
  explicit LocalFiles(std::function<Input(Input)> wrap) : wrap_(std::move(wrap)) {}
  /// Opens a file. Returns io_error if it does not exist, cannot be read or is not a regular file. Never waits for a
  /// FIFO or a device.
  Result<Input> open(const std::string& path);
  /// Empty if nothing is at `path`, not even an unreadable file.
  Result<std::optional<Input>> find(const std::string& path);

  /// Returns whether `path` leads to one of the files, by any name or link.
  bool contain(const std::string& path) const;
  /// Returns file_changed, with the file's name, if the size or date of one of them has changed since it was opened.
  Status unchanged() const;
  /// The same for one file. Any thread.
  Status unchanged(std::uint32_t number) const;

  std::uint32_t count() const { return static_cast<std::uint32_t>(files_.size()); }
  const std::string& path(std::uint32_t number) const;
  const sys::FileInfo& info(std::uint32_t number) const;

 private:
  std::vector<std::shared_ptr<const LocalFile>> files_;
  std::function<Input(Input)> wrap_;
};

/// Returns the file or folder at `path`, to be read through `files`. Returns io_error if nothing there can be read.
Result<ModelLocation> local_place(const std::string& path, const std::shared_ptr<LocalFiles>& files);

}  // namespace qsf::convert
