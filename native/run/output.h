// The output of qsf-run: standard output, and files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "qsf/base/result.h"
#include "system/new_file.h"

namespace qsf::run {

/// Returns bad_argument if standard output is one of the files `inputs`.
Status check_output(std::span<const std::string> inputs);
/// Writes text to a file or pipe unchanged, to a terminal without control characters. Errors: io_error, cancelled.
Status show(std::string_view text);
/// Returns io_error if not everything that was printed to standard output could be written.
Status finish_output();
/// Prints the error and returns the program's exit code for it. Prints nothing if standard output failed because nobody
/// reads it any more: whoever ended the reader knows.
int fail(const Error& error);

/// A file that is written under another name in the same folder and takes its place at the end. The earlier file stays
/// until then. Devices and pipes are written directly.
class OutputFile {
 public:
  /// Opens a file for `path`. bad_argument if it is one of the files `inputs`, or standard output's; io_error.
  static Result<OutputFile> create(const std::string& path, std::span<const std::string> inputs);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        new_file_(std::move(other.new_file_)),
        device_(std::exchange(other.device_, -1)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  /// Removes the file unless commit() succeeded.
  ~OutputFile();

  /// Returns the path of its place, with links followed.
  const std::string& path() const { return path_; }
  Status write(std::span<const std::byte> bytes);
  /// Writes at an offset, in any order; not for pipes.
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Moves the file to its place.
  Status commit();

 private:
  explicit OutputFile(sys::NewFile file) : path_(file.path()), new_file_(std::move(file)) {}
  OutputFile(std::string path, int device) : path_(std::move(path)), device_(device) {}
  int file() const { return new_file_ ? new_file_.file() : device_; }

  std::string path_;
  sys::NewFile new_file_;  // none for a device
  int device_ = -1;
};

}  // namespace qsf::run
