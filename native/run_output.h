// What qsf-run writes: its standard output, and files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "qsf/base/result.h"

namespace qsf::run {

/// Whether standard output is none of the files `inputs`, which are read: bad_argument.
Status check_output(std::span<const std::string> inputs);
/// Writes text as it is to a file or pipe; to a terminal without control characters. io_error, cancelled.
Status show(std::string_view text);
/// Whether everything that was printed to standard output could be written.
Status finish_output();

/// A file that is written under another name beside it and takes its place at the end; what was there before stays
/// until then. Devices and pipes are written as they are.
class OutputFile {
 public:
  /// Tries to write at `path`, which is none of the files `inputs` and not standard output's: bad_argument, io_error.
  static Result<OutputFile> create(const std::string& path, std::span<const std::string> inputs);
  OutputFile(OutputFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, {})),
        file_(std::exchange(other.file_, -1)) {}
  OutputFile& operator=(OutputFile&&) = delete;
  /// Unless it took its place, nothing of it stays.
  ~OutputFile();

  /// Where it will be, with links followed.
  const std::string& path() const { return path_; }
  Status write(std::span<const std::byte> bytes);
  /// At a place of its own, in any order; not for pipes.
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Takes its place.
  Status commit();

 private:
  OutputFile(std::string path, std::string temporary, int file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

  std::string path_, temporary_;  // temporary_: empty for a device
  int file_;
};

}  // namespace qsf::run
