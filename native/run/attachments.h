// Text files that are put into a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::run {

/// The files of the next message, which stand before its text. Each has its name and its content between two fences
/// of grave accents, which are longer than any in the content.
class Attachments {
 public:
  /// Takes files of at most `limit` bytes together.
  explicit Attachments(std::size_t limit) : limit_(limit) {}

  /// Reads a file and returns its name. Errors: bad_argument for a path without a name that can be shown; bad_text for
  /// a file that is not UTF-8 or has control characters of no text; context_full for too many bytes; io_error;
  /// cancelled.
  Result<std::string> add(const std::string& path);
  /// Returns the message after its files, which are then forgotten.
  std::string before(std::string_view message);
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

 private:
  std::size_t limit_;
  std::string text_;
};

}  // namespace qsf::run
