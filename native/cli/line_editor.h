// Typed lines with editing and a history, by libedit (histedit.h). The library is loaded at the first use, so that
// programs start without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace qsf::run {

enum class LineKind : std::uint8_t { line, too_long, end };

/// Between lines the terminal shows nothing of what is typed or pasted, and keeps it for the next line whatever its
/// length. The terminal has its own settings back after this object, and after a signal.
class LineEditor {
 public:
  /// Returns an editor of lines of at most `limit` bytes. Returns null unless standard input and standard error are a
  /// terminal that can be edited at, and if libedit is not there.
  static std::unique_ptr<LineEditor> open(std::size_t limit);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Writes the line that is typed after the mark, without its end. A text that the terminal pastes in one piece is
  /// taken whole, with its line ends. A line that is too long is read and left out. Returns `end` also after a signal.
  LineKind next(std::string_view mark, std::string& line);
  /// Adds a message to the history, which ends with the editor. Leaves out long ones.
  void remember(const std::string& message);

 private:
  struct State;
  explicit LineEditor(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace qsf::run
