#include "native/host/chat.h"

#include "qsf/base/align.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf {
namespace {

/// Returns the variables of a conversation that asks for an answer.
Result<std::string> question(std::span<const ChatMessage> messages, std::string_view tools) {
  if (messages.empty()) return make_error(ErrorCode::bad_argument, "the conversation has no message");
  if (messages.back().role == "assistant") {
    return make_error(ErrorCode::bad_argument, "the conversation ends with an answer, so there is nothing to answer");
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!utf8::is_valid(messages[i].content) || !utf8::is_valid(messages[i].role)) {
      return make_error(ErrorCode::bad_text, "message {} is not UTF-8", i);
    }
  }
  return chat_variables(messages, tools, true);
}

}  // namespace

Result<Chat> Chat::open(Session& session, ChatSettings settings, std::span<std::byte> memory, std::size_t n) {
  const chat::Conversation none{settings.chat_template, {}, settings.arguments, local_now()};
  const chat::TextMemory divided = chat::AnswerParts::divide(memory, n);
  QSF_LET(answers, chat::AnswerForm::read(session, none, divided.conversations));
  return Chat(std::move(settings), divided, answers, n);
}

Status Chat::hold_calls(chat::Guide& guide, const chat::CallRules& rules) const {
  const std::string values = chat_variables({}, settings_.tools, true);
  return guide.set_calls(conversation(values), rules);
}

Result<std::string> Chat::render(const Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(values, question(messages, settings_.tools));
  QSF_LET(rendered, chat::render(session, conversation(values), memory_.conversations));
  return std::string(rendered.text);
}

Result<std::vector<std::uint32_t>> Chat::tokenize(Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(values, question(messages, settings_.tools));
  QSF_LET(tokens, chat::tokenize(session, conversation(values), memory_.conversations));
  return std::vector<std::uint32_t>(tokens.ids.begin(), tokens.ids.end());
}

Result<std::uint32_t> Chat::count(Session& session, std::span<const ChatMessage> messages) const {
  QSF_LET(values, question(messages, settings_.tools));
  const chat::Conversation asked = conversation(values);
  QSF_LET(special, chat::special_tokens(session, memory_.conversations));
  return count_tokens(session, chat::template_of(session, asked), {values, special, asked.now, asked.more});
}

Result<Question> Chat::ask(Session& session, std::span<const ChatMessage> messages,
                           std::span<const std::string_view> stops) const {
  QSF_LET(values, question(messages, settings_.tools));
  const chat::Conversation asked = conversation(values);
  const std::size_t each = memory_.parts.size() / n_answers_ / kAlignment * kAlignment;
  std::vector<chat::AnswerParts> readers;
  for (std::size_t i = 0; i < n_answers_; ++i) {
    const std::span<std::byte> memory = memory_.parts.subspan(i * each, each);
    QSF_LET(parts, chat::AnswerParts::open(session, answers_, asked, memory_.conversations, memory));
    readers.push_back(parts);
  }
  QSF_LET(tokens, chat::tokenize(session, asked, memory_.conversations));
  for (chat::AnswerParts& parts : readers) QSF_TRY(parts.begin(tokens.rendered, stops));
  return Question{{tokens.ids.begin(), tokens.ids.end()}, readers.front(), {readers.begin() + 1, readers.end()}};
}

}  // namespace qsf
