// Conversations of messages with an open model, by its chat template or another. qsf/chat has what all hosts share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "native/host/chat_template.h"
#include "qsf/chat/answer_form.h"
#include "qsf/chat/answer_parts.h"
#include "qsf/chat/guide.h"
#include "qsf/engine.h"

namespace qsf {

struct ChatSettings {
  std::string chat_template = {};  // empty: the file's
  std::string arguments = {};      // a JSON object of further variables of the template; empty: none
  std::string tools = {};          // a JSON list of tools that answers may call; empty: none
};

/// The ids of a conversation, and the readers of its answers.
struct Question {
  std::vector<std::uint32_t> ids;
  chat::AnswerParts parts;              // of the first answer
  std::vector<chat::AnswerParts> more;  // of the others
};

class Chat {
 public:
  /// Each call works in `memory`, which must outlive the chat; such is Session::text_memory(). Errors: unsupported
  /// without a chat template; bad_text without a tokenizer; bad_input if the arguments are not a JSON object. A
  /// question has as many `answers`.
  static Result<Chat> open(Session& session, ChatSettings settings, std::span<std::byte> memory,
                           std::size_t answers = 1);

  /// Returns the ends and marks of answers.
  const chat::AnswerForm& answers() const { return answers_; }

  /// Holds the calls of a guide's answers to the tools of the settings. Fails as chat::Guide::set_calls() does.
  Status hold_calls(chat::Guide& guide, const chat::CallRules& rules) const;
  /// Returns the text of a conversation and of what asks for an answer. Fails with bad_argument if there is no message,
  /// or if the last is an answer, with bad_text for a message that is not UTF-8, and as chat::render() does.
  Result<std::string> render(const Session& session, std::span<const ChatMessage> messages) const;
  /// Returns the ids of that text. Fails as chat::tokenize() does too.
  Result<std::vector<std::uint32_t>> tokenize(Session& session, std::span<const ChatMessage> messages) const;
  /// Returns the number of those ids, also if they do not fit in the context. Fails as render() and count_tokens() do.
  Result<std::uint32_t> count(Session& session, std::span<const ChatMessage> messages) const;
  /// Returns the ids of that text, and the readers of the answers, which the next call ends. `stops` are the prompt's.
  /// Fails as tokenize() and chat::AnswerParts do.
  Result<Question> ask(Session& session, std::span<const ChatMessage> messages,
                       std::span<const std::string_view> stops) const;

 private:
  Chat(ChatSettings settings, const chat::TextMemory& memory, const chat::AnswerForm& answers, std::size_t n_answers)
      : settings_(std::move(settings)), memory_(memory), answers_(answers), n_answers_(n_answers) {}

  chat::Conversation conversation(std::string_view values) const {
    return {settings_.chat_template, values, settings_.arguments, local_now()};
  }

  ChatSettings settings_;
  chat::TextMemory memory_;
  chat::AnswerForm answers_;
  std::size_t n_answers_;
};

}  // namespace qsf
