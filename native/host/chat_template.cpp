#include "native/host/chat_template.h"

#include <ctime>
#include <memory>

#include "qsf/base/json.h"
#include "qsf/base/try.h"
#include "qsf/chat/conversation.h"
#include "system/program.h"

namespace qsf {

void append_json(std::string& out, std::string_view text) {
  json::write_text(text, [&out](char c) { out += c; });
}

namespace {

/// Memory for a template, of which only the bytes in use are ever touched.
struct Memory {
  Memory(std::string_view text, const templates::Variables& variables)
      : size(templates::kUsualMemory + 16 * (variables.values.size() + text.size())),
        bytes(std::make_unique_for_overwrite<std::byte[]>(size)) {}

  std::size_t size;
  std::unique_ptr<std::byte[]> bytes;
};

/// Room for the ids of a text of any length.
struct TextIds {
  explicit TextIds(std::string_view text)
      : most(2 * text.size() + 64),  // normalizers make some texts longer
        ids(std::make_unique_for_overwrite<std::uint32_t[]>(most)) {}
  std::span<std::uint32_t> room() const { return {ids.get(), most}; }

  std::size_t most;
  std::unique_ptr<std::uint32_t[]> ids;
};

}  // namespace

Result<std::uint32_t> count_tokens(Session& session, std::string_view text) {
  const TextIds ids(text);
  QSF_LET(n, session.tokenize(text, true, ids.room(), {}, true));
  return n + (session.closing_token(ids.room().first(n)) ? 1u : 0u);
}

Result<std::string> render_template(std::string_view text, const templates::Variables& variables) {
  const Memory memory(text, variables);
  QSF_LET(rendered, chat::render(text, variables, {memory.bytes.get(), memory.size}));
  return std::string(rendered.text);
}

Result<std::uint32_t> count_tokens(Session& session, std::string_view text, const templates::Variables& variables) {
  const Memory memory(text, variables);
  QSF_LET(rendered, chat::render(text, variables, {memory.bytes.get(), memory.size}));
  const TextIds ids(rendered.text);
  return session.tokenize(rendered.text, true, ids.room(), rendered.plain, true);
}

templates::Time local_now() {
  const std::tm now = sys::local_time(std::time(nullptr));
  const auto natural = [](int number) { return static_cast<std::uint32_t>(number); };
  return {.year = now.tm_year + 1900,
          .month = natural(now.tm_mon + 1),
          .day = natural(now.tm_mday),
          .hour = natural(now.tm_hour),
          .minute = natural(now.tm_min),
          .second = natural(now.tm_sec)};
}

void append_json(std::string& out, const ChatMessage& message) {
  out += "{\"role\":";
  append_json(out, message.role);
  out += ",\"content\":";
  append_json(out, message.content);
  if (!message.more.empty()) (out += ',') += message.more;
  out += '}';
}

std::string chat_variables(std::span<const ChatMessage> messages, std::string_view tools, bool add_generation_prompt) {
  std::string out = "{\"messages\":[";
  for (const ChatMessage& message : messages) {
    if (&message != messages.data()) out += ',';
    append_json(out, message);
  }
  out += ']';
  if (!tools.empty()) (out += ",\"tools\":") += tools;
  out += ",\"add_generation_prompt\":";
  return out += add_generation_prompt ? "true}" : "false}";
}

}  // namespace qsf
