// The messages of a conversation, from lines of standard input.
#pragma once

#include <memory>
#include <string>

#include "native/cli/input.h"
#include "native/cli/line_editor.h"

namespace qsf::run {

/// Reads a message from each line. At a terminal a message may have several lines: a pasted text, the lines from
/// `"""` to `"""`, or lines that end in a backslash; and lines are edited by LineEditor if it is there.
class Messages {
 public:
  /// Takes messages of at most `limit` bytes.
  explicit Messages(std::size_t limit);

  /// Writes the next message. One that is too long is read and left out. Returns `end` also after a signal.
  LineKind next(std::string& message);
  /// Whether somebody types the messages.
  bool typed() const { return typed_; }

 private:
  LineKind line(std::string_view mark, std::string& out);
  LineKind add(std::string& message);

  std::size_t limit_;
  Lines lines_;
  bool typed_;
  std::unique_ptr<LineEditor> editor_;
};

/// Whether the message asks for the end: /exit or /quit.
bool asks_to_end(std::string_view message);

}  // namespace qsf::run
