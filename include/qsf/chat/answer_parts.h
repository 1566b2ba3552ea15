// The parts of a model's answer while it is generated: text for the user, thoughts, and calls of tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/answers/part.h"
#include "qsf/answers/place.h"
#include "qsf/chat/answer_form.h"
#include "qsf/chat/conversation.h"

namespace qsf::chat {

using answers::Part;
using answers::PartSink;

/// The memory for texts, divided.
struct TextMemory {
  std::span<std::byte> conversations, parts;
};

/// Reads the tokens of an answer. A call is given when it is whole, because a text that only begins as one is text. An
/// answer has calls only if its conversation has `tools`. Blanks next to marks belong to no part.
class AnswerParts {
 public:
  /// Returns the division of a session's memory for texts that hosts use: its beginning for the parts of as many
  /// answers at once, at most a quarter of the memory and 1 MiB for each.
  static TextMemory divide(std::span<std::byte> texts, std::size_t answers = 1);

  /// Reads the tools of a conversation with the form of its template. `scratch` is used during the call; `memory` and
  /// the session must outlive the object, and later objects in the same memory replace it. A call whose arguments need
  /// more than half of the memory is text. Errors: bad_input for variables that are not JSON; out_of_memory.
  static Result<AnswerParts> open(const Session& session, const AnswerForm& form, const Conversation& conversation,
                                  std::span<std::byte> scratch, std::span<std::byte> memory);

  /// Begins the answer to the rendered conversation, with the prompt's stop strings. Errors: those of Prompt::stops.
  Status begin(const RenderedText& rendered, std::span<const std::string_view> stops);
  /// Takes a token after Step::token, and gives the parts that it completes.
  void token(std::uint32_t id, const PartSink& sink);
  /// Gives the text that was held back, after Step::done or Session::stop().
  void end(const PartSink& sink);

  /// Returns the place after the tokens so far.
  answers::Place place() const;
  /// Whether some of their text was not read yet, because it may begin a stop string or is a part of a character.
  bool lags() const;
  const answers::Marks& marks() const;

 private:
  struct State;  // in the caller's memory
  explicit AnswerParts(State* state) : state_(state) {}

  State* state_;
};

}  // namespace qsf::chat
