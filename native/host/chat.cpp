#include "native/host/chat.h"

#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf {
namespace {

/// Returns the variables of a conversation that asks for an answer.
Result<std::string> question(std::span<const ChatMessage> messages) {
  if (messages.empty()) return make_error(ErrorCode::bad_argument, "the conversation has no message");
  if (messages.back().role == "assistant") {
    return make_error(ErrorCode::bad_argument, "the conversation ends with an answer, so there is nothing to answer");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!utf8::is_valid(messages[i].content) || !utf8::is_valid(messages[i].role)) {
      return make_error(ErrorCode::bad_text, "message {} is not UTF-8", i);
    }
  }
  return chat_variables(messages, true);
}

}  // namespace

Result<Chat> Chat::open(Session& session, ChatSettings settings, std::span<std::byte> memory) {
  const chat::Conversation none{settings.chat_template, {}, settings.arguments, local_now()};
  QSF_LET(answers, chat::AnswerForm::read(session, none, memory));
  return Chat(std::move(settings), memory, answers);
}

Result<std::string> Chat::render(const Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(values, question(messages));
  QSF_LET(rendered, chat::render(session, conversation(values), memory_));
  return std::string(rendered.text);
}

Result<std::vector<std::uint32_t>> Chat::tokenize(Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(values, question(messages));
  QSF_LET(tokens, chat::tokenize(session, conversation(values), memory_));
  return std::vector<std::uint32_t>(tokens.ids.begin(), tokens.ids.end());
}

}  // namespace qsf
