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

Result<std::string> render_template(std::string_view text, const templates::Variables& variables) {
  const std::size_t bytes = templates::kUsualMemory + 16 * (variables.values.size() + text.size());
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);  // only the bytes in use are ever touched
  QSF_LET(rendered, chat::render(text, variables, {memory.get(), bytes}));
  return std::string(rendered.text);
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
