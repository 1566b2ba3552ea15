// Text that qsf-run reads: never more than the context can hold, whatever there is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "qsf/engine.h"

namespace qsf::run {

/// Bytes of a text whose tokens fill the whole context, at most.
std::size_t longest_text(const Session& session);

/// All of a file, or of standard input for an empty path, without the line end that editors and echo add. context_full
/// when there is more than `limit` bytes, what `holder` can hold; io_error, cancelled.
Result<std::string> read_text(const std::string& path, std::size_t limit, std::string_view holder = "the context");

/// The lines of standard input, or of another file that is open.
class Lines {
 public:
  /// `limit`: of a line's bytes.
  explicit Lines(std::size_t limit, int from = 0) : limit_(limit), from_(from) {}

  enum class Kind { line, too_long, end };
  /// Writes the next line, without its end; what is too long is read and left out. `end` also after a signal.
  Kind next(std::string& line);

 private:
  std::size_t limit_;
  int from_;
  char buffer_[4096];
  std::size_t at_ = 0, size_ = 0;
};

}  // namespace qsf::run
