#include "native/run/turns.h"

#include <utility>

#include "native/run/json.h"

namespace qsf::run {
namespace {

/// Returns a member of an object that is a text; empty if there is none.
std::string text_of(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name) || !object[name].is_string()) return {};
  return object[name].get<std::string>();
}

/// Returns the calls of an answer, in any form that messages of pages have. The id may be missing.
std::vector<ToolCall> calls_of(const Turn& turn) {
  std::vector<ToolCall> calls;
  if (turn.role != kAssistant || turn.more.empty()) return calls;
  const Json members = Json::parse("{" + turn.more + "}", nullptr, false);
  if (!members.contains("tool_calls") || !members["tool_calls"].is_array()) return calls;
  for (const Json& call : members["tool_calls"]) {
    const bool is_nested = call.is_object() && call.contains("function");
    calls.push_back({text_of(call, "id"), text_of(is_nested ? call["function"] : call, "name"), {}});
  }
  return calls;
}

}  // namespace

Status begin_turns(const Options& options, std::vector<Turn>& turns) {
  if (!options.system_prompt) return {};
  if (turns.empty()) turns.push_back({std::string(kSystem), *options.system_prompt});
  if (turns[0].role == kSystem && turns[0].content == *options.system_prompt) return {};
  return make_error(ErrorCode::bad_argument, "the conversation of --session has another system prompt");
}

std::vector<ChatMessage> messages_of(std::span<const Turn> turns, std::span<const Turn> asked) {
  std::vector<ChatMessage> messages;
  for (const std::span<const Turn> part : {turns, asked}) {
    for (const Turn& turn : part) messages.push_back({turn.role, turn.content, turn.more});
  }
  return messages;
}

std::vector<ToolCall> last_calls(std::span<const Turn> turns) {
  return turns.empty() ? std::vector<ToolCall>() : calls_of(turns.back());
}

std::size_t count_calls(std::span<const Turn> turns) {
  std::size_t n = 0;
  for (const Turn& turn : turns) n += calls_of(turn).size();
  return n;
}

std::vector<ToolCall> add_line(std::span<const Turn> turns, const std::string& line, std::vector<Turn>& asked) {
  std::vector<ToolCall> calls = last_calls(turns);
  if (calls.empty()) {
    asked = {{std::string(kUser), line}};
    return calls;
  }
  const ToolCall& call = calls[asked.size()];
  std::string more = "\"tool_call_id\":";
  append_json(more, call.id);
  append_json(more += ",\"name\":", call.name);
  asked.push_back({std::string(kTool), line, std::move(more)});
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(asked.size()));
  return calls;
}

void add_answer(const Answer& answer, std::vector<Turn>& turns) {
  turns.push_back({std::string(kAssistant), answer.content(), answer.more()});
}

}  // namespace qsf::run
