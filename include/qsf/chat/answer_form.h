// The form that a chat template gives to answers: their ends, and the marks around their parts.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/answers/marks.h"
#include "qsf/chat/conversation.h"

namespace qsf::chat {

class AnswerForm {
 public:
  /// Reads the form from a conversation that the template renders in `memory`. `conversation.values` has no effect. A
  /// template that refuses that conversation has only the model's own ends. Errors: those of tokenize(), except the
  /// template's refusal and mistakes.
  static Result<AnswerForm> read(Session& session, const Conversation& conversation, std::span<std::byte> memory);

  /// Returns the tokens for Prompt::end_tokens, besides the model's own: with which the template ends an answer, if it
  /// is a special token.
  std::span<const std::uint32_t> end_tokens() const { return std::span(end_).first(n_ends_); }
  /// Returns the text for Prompt::stops if the template ends an answer with a text that is no token here; otherwise
  /// empty.
  std::string_view stop() const { return {stop_.data(), stop_size_}; }
  /// Returns the marks that answers may have: those that occur in the template or are special tokens.
  const answers::Marks& marks() const { return marks_; }
  /// Whether the template writes a space before an answer, with which the first word begins too.
  bool drops_space() const { return space_; }

 private:
  static constexpr std::size_t kMaxStop = 64;  // bytes, as in stop strings

  Status read_end(Session& session, std::string_view text, std::span<std::byte> memory);
  Status read_marks(Session& session, std::string_view chat_template, std::span<std::byte> memory);

  std::array<std::uint32_t, 1> end_{};
  std::array<char, kMaxStop> stop_{};
  std::size_t n_ends_ = 0, stop_size_ = 0;
  bool space_ = false;
  answers::Marks marks_;
};

}  // namespace qsf::chat
