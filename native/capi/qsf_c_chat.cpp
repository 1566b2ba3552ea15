// Conversations in the C API: templates, messages, and tools that answers may call.
#include <algorithm>
#include <memory>
#include <utility>

#include "native/capi/qsf_c.h"
#include "qsf/base/try.h"

namespace qsf::c_api {
namespace {

/// Returns the members of an object in JSON, without its braces.
Result<std::string_view> members_of(std::string_view object) {
  constexpr std::string_view kBlank = " \t\r\n";
  QSF_TRY(check_json("the further members of a message", object, json::Kind::object));
  object.remove_prefix(object.find('{') + 1);
  object.remove_suffix(object.size() - object.rfind('}'));
  return object.find_first_not_of(kBlank) == object.npos ? std::string_view() : object;
}

}  // namespace

Status check_json(const char* what, std::string_view text, json::Kind kind) {
  // The reader's tables grow by doubling, and a value has at least a byte of text.
  const std::size_t bytes = (text.size() + 64) * 4 * sizeof(json::Value);
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);  // only the bytes in use are ever touched
  Store store({memory.get(), bytes});
  QSF_LET(read, json::Document::read(text, store));
  if (read[json::Document::kRoot].kind == kind) return {};
  return make_error(ErrorCode::bad_input, "{} must be {} in JSON", what,
                    kind == json::Kind::array ? "a list" : "an object");
}

Result<std::vector<ChatMessage>> read_messages(const QSFChatMessage* messages, int n) {
  if (messages == nullptr || n <= 0) return wrong("no messages were given");
  std::vector<ChatMessage> out;
  for (int i = 0; i < n; ++i) {
    if (messages[i].role == nullptr || messages[i].content == nullptr) {
      return make_error(ErrorCode::bad_argument, "message {} has no role or no content", i);
    }
    ChatMessage message{messages[i].role, messages[i].content};
    if (messages[i].more != nullptr) {
      QSF_LET(more, members_of(messages[i].more));
      message.more = more;
    }
    out.push_back(message);
  }
  return out;
}

Result<Chat*> open_chat(QSFEngine& engine) {
  if (engine.chat) return &*engine.chat;
  Session& session = engine.host->session();
  QSF_LET(chat, Chat::open(session, engine.chat_settings, engine.guide ? engine.guide->free() : session.text_memory()));
  return &engine.chat.emplace(std::move(chat));
}

Chat* chat_of(QSFEngine* engine) {
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return nullptr;
  }
  const Result<Chat*> chat = open_chat(*engine);
  if (chat) return *chat;
  fail_to_read(*engine, chat.error());
  return nullptr;
}

Status hold_calls(QSFEngine& engine) {
  const std::string_view choice = engine.tool_choice;
  const bool is_word = choice == "auto" || choice == "required";
  return engine.chat->hold_calls(*engine.guide,
                                 {.required = choice != "auto", .only = is_word ? std::string_view() : choice});
}

}  // namespace qsf::c_api

namespace {

using namespace qsf;
using namespace qsf::c_api;

char* chat_template(QSFEngine* engine) {
  const std::string_view text = engine == nullptr ? "" : engine->host->session().metadata(kMetaChatTemplate);
  if (!text.empty()) return owned(text);
  fail(engine == nullptr ? wrong("an engine is needed")
                         : make_error(ErrorCode::unsupported, "the file has no chat template"));
  return nullptr;
}

/// Opens the chat again by these settings, or leaves everything as it was.
bool reopen(QSFEngine& engine, ChatSettings settings) {
  std::swap(engine.chat_settings, settings);
  std::optional<Chat> before = std::exchange(engine.chat, std::nullopt);
  if (chat_of(&engine) != nullptr) return true;
  engine.chat_settings = std::move(settings);
  engine.chat = std::move(before);
  return false;
}

int chat_configure(QSFEngine* engine, const char* chat_template, const char* arguments) {
  if (engine == nullptr) {
    fail(wrong("an engine is needed"));
    return -1;
  }
  for (const char* const text : {chat_template, arguments}) {
    if (text == nullptr || *text != 0) continue;
    fail(wrong(text == chat_template ? "the chat template is empty" : "the arguments of the template are empty"));
    return -1;
  }
  ChatSettings settings;
  if (chat_template != nullptr) settings.chat_template = chat_template;
  if (arguments != nullptr) settings.arguments = arguments;
  settings.tools = engine->chat_settings.tools;
  return reopen(*engine, std::move(settings)) ? 0 : -1;
}

char* chat_render(QSFEngine* engine, const QSFChatMessage* messages, int num_messages) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return nullptr;
  const Result<std::vector<ChatMessage>> read = read_messages(messages, num_messages);
  const Result<std::string> text =
      read ? chat->render(engine->host->session(), *read) : Result<std::string>(read.error());
  if (text) return owned(*text);
  fail(text.error());
  return nullptr;
}

int* chat_tokenize(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int* num_tokens) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return nullptr;
  if (num_tokens == nullptr) {
    fail(wrong("a place for the count is needed"));
    return nullptr;
  }
  *num_tokens = 0;
  const auto read = [&]() -> Result<std::vector<std::uint32_t>> {
    QSF_LET(given, read_messages(messages, num_messages));
    return chat->tokenize(engine->host->session(), given);
  };
  const Result<std::vector<std::uint32_t>> ids = read();
  if (!ids) {
    fail_to_read(*engine, ids.error());
    return nullptr;
  }
  *num_tokens = static_cast<int>(ids->size());
  return owned(*ids);
}

int chat_ends(QSFEngine* engine, int token_id) {
  const Chat* chat = chat_of(engine);
  if (chat == nullptr) return -1;
  const std::span<const std::uint32_t> ends = chat->answers().end_tokens();
  return std::ranges::find(ends, static_cast<std::uint32_t>(token_id)) != ends.end() ? 1 : 0;
}

}  // namespace

char* qsf_chat_template(QSFEngine* engine) {
  return call<char*>(nullptr, [&] { return chat_template(engine); });
}

int qsf_chat_configure(QSFEngine* engine, const char* chat_template, const char* arguments) {
  return call<int>(-1, [&] { return chat_configure(engine, chat_template, arguments); });
}

char* qsf_chat_render(QSFEngine* engine, const QSFChatMessage* messages, int num_messages) {
  return call<char*>(nullptr, [&] { return chat_render(engine, messages, num_messages); });
}

int* qsf_chat_tokenize(QSFEngine* engine, const QSFChatMessage* messages, int num_messages, int* num_tokens) {
  return call<int*>(nullptr, [&] { return chat_tokenize(engine, messages, num_messages, num_tokens); });
}

int qsf_chat_ends(QSFEngine* engine, int token_id) {
  return call<int>(-1, [&] { return chat_ends(engine, token_id); });
}
