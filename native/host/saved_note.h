// The note of a saved sequence, a JSON object: the conversation that the sequence is of, and text that follows its
// tokens. docs/reference/format-session.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qsf/base/result.h"

namespace qsf {

/// A message of a conversation.
struct Turn {
  std::string role, content;
  std::string more = {};  // further members in JSON, such as "tool_calls":[...]
};

struct SavedNote {
  std::vector<Turn> turns;  // empty for a text
  std::string rest;         // text that follows the sequence's tokens and precedes the next prompt

  /// Reads a note, which may be empty. Fails with bad_input if it is not one, or if the role or the content of a
  /// message is no text.
  static Result<SavedNote> read(std::string_view text);
  /// Returns the note as text; empty if there is nothing to note.
  std::string text() const;
};

}  // namespace qsf
