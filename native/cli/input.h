// Text that qsf-run reads, at most as much as the context can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "native/cli/line_editor.h"
#include "qsf/engine.h"

namespace qsf::run {

/// Returns the most bytes that a text of the whole context can have.
std::size_t longest_text(const Session& session);

/// Returns all of a file, or of standard input if the path is empty, without the byte order mark and the last line
/// feed, which editors and echo add. Errors: context_full for more than `limit` bytes, which is as much as `holder` can
/// hold; io_error; cancelled.
Result<std::string> read_text(const std::string& path, std::size_t limit, std::string_view holder);
/// Returns a prompt in the same way, without a carriage return before the last line feed.
Result<std::string> read_prompt(const std::string& path, std::size_t limit);

/// The lines of standard input, or of another open file, without byte order mark and carriage return.
class Lines {
 public:
  /// Takes lines of at most `limit` bytes.
  explicit Lines(std::size_t limit, int from = 0) : limit_(limit), from_(from) {}
  /// Takes those of a regular file from the byte `at` on, wherever others read it.
  Lines(std::size_t limit, int from, std::uint64_t at) : limit_(limit), from_(from), read_(at), at_place_(true) {}

  using Kind = LineKind;
  /// Writes the next line without its end. A line that is too long is read and left out. Returns `end` also after a
  /// signal or a failed read.
  Kind next(std::string& line);
  /// Returns the error number of a failed read, or 0.
  int error() const { return error_; }
  /// Whether the next line must be waited for.
  bool waits() const { return at_ == size_; }
  /// Returns the number of lines so far.
  std::size_t count() const { return count_; }
  /// Returns the place of the next line: its bytes from the first one that was read, or from the file's beginning.
  std::uint64_t place() const { return read_ - (size_ - at_); }

 private:
  std::size_t limit_;
  int from_, error_ = 0;
  std::uint64_t read_ = 0;  // the place of the next read
  bool at_place_ = false;   // whether reads name their place
  char buffer_[4096];
  std::size_t at_ = 0, size_ = 0, count_ = 0;
};

}  // namespace qsf::run
