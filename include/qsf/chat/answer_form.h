// The form that a chat template gives to answers: their ends, and for templates with headers the reader of each part.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/chat/conversation.h"

namespace qsf::chat {

/// The reader of a part of an answer, in templates with headers.
enum class Speech : std::uint8_t {
  answer,   // the user
  thought,  // the model itself
  header,   // nobody: it states who speaks, and where
};

/// Returns the reader of the text after `ids`. A header begins with `start`, or with the first token of `final_mark`,
/// which names a channel, and ends with its last. An answer follows all of `final_mark`, or a header without a channel.
Speech speech_after(std::span<const std::uint32_t> ids, std::uint32_t start, std::span<const std::uint32_t> final_mark);

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
  /// Returns the reader of the text after a sequence's `ids`.
  Speech speech(std::span<const std::uint32_t> ids) const { return speech_after(ids, start_, final_mark()); }
  /// Returns the part of an answer that the conversation remembers.
  std::string_view remembered(const Session& session, std::span<const std::uint32_t> ids, std::string_view text) const;

 private:
  static constexpr std::size_t kMaxMark = 8;   // tokens
  static constexpr std::size_t kMaxStop = 64;  // bytes, as in stop strings

  std::span<const std::uint32_t> final_mark() const { return std::span(final_mark_).first(n_mark_); }
  Status read_end(Session& session, std::string_view text, std::span<std::byte> memory);
  Status read_headers(Session& session, std::span<std::byte> memory);

  std::array<std::uint32_t, 1> end_{};
  std::array<std::uint32_t, kMaxMark> final_mark_{};
  std::array<char, kMaxStop> stop_{};
  std::size_t n_ends_ = 0, n_mark_ = 0, stop_size_ = 0;
  std::uint32_t start_ = kNoToken;  // with which an answer begins, if there are headers
  bool space_ = false;              // the template writes a space before an answer
};

}  // namespace qsf::chat
