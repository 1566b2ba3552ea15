#include "native/cli/messages.h"

#include "native/cli/terminal.h"
#include "system/program.h"

namespace qsf::run {
namespace {

constexpr std::string_view kFirst = ">", kMore = ".", kBlock = "\"\"\"";

}  // namespace

Messages::Messages(std::size_t limit)
    : limit_(limit),
      lines_(limit),
      typed_(sys::is_terminal(sys::kInput)),
      editor_(typed_ ? LineEditor::open(limit) : nullptr) {}

LineKind Messages::line(std::string_view mark, std::string& out) {
  if (editor_ != nullptr) return editor_->next(input_mark(mark), out);
  if (typed_ && lines_.waits()) show_input_mark(mark);
  return lines_.next(out);
}

/// Adds a line to the message.
LineKind Messages::add(std::string& message) {
  std::string more;
  const LineKind kind = line(kMore, more);
  if (kind != LineKind::line || message.size() + more.size() >= limit_) {
    return kind == LineKind::line ? LineKind::too_long : kind;
  }
  message += "\n" + more;
  return LineKind::line;
}

LineKind Messages::next(std::string& message) {
  LineKind kind = line(kFirst, message);
  if (!typed_ || kind != LineKind::line) return kind;
  bool too_long = false;
  const auto goes_on = [&] {
    kind = add(message);
    too_long = too_long || kind == LineKind::too_long;
    return kind != LineKind::end;
  };
  if (message.starts_with(kBlock)) {
    // The marks of a block that is too long are still read, so that its lines are no messages.
    while (message.size() < 2 * kBlock.size() || !message.ends_with(kBlock)) {
      if (!goes_on()) return kind;
    }
    message = message.substr(kBlock.size(), message.size() - 2 * kBlock.size());
    if (message.starts_with('\n')) message.erase(0, 1);
    if (message.ends_with('\n')) message.pop_back();
  } else {
    while (message.ends_with('\\')) {
      message.pop_back();
      if (!goes_on()) return kind;
    }
  }
  if (too_long) return LineKind::too_long;
  if (editor_ != nullptr) editor_->remember(message);
  return LineKind::line;
}

bool asks_to_end(std::string_view message) { return message == "/exit" || message == "/quit"; }

}  // namespace qsf::run
