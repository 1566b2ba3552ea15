#include "chat/call_form.h"

#include <algorithm>

#include "answers/syntaxes.h"
#include "qsf/base/json.h"
#include "qsf/base/store.h"
#include "qsf/base/try.h"

namespace qsf::chat {
namespace {

constexpr std::string_view kName = "qsf_probe", kKey = "qsf_key", kTool = "qsf_tool";
/// Conversations with a call, as templates expect arguments and ids. Kimi's ids have the names of tools.
constexpr std::array<std::string_view, 3> kProbes{
    R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"call00000",)"
    R"("type":"function","function":{"name":"qsf_probe","arguments":{"qsf_key":"y"}}}]}],)"
    R"("tools":[{"type":"function","function":{"name":"qsf_tool","description":"x","parameters":{"type":"object",)"
    R"("properties":{"z":{"type":"string","description":"x"}},"required":["z"]}}}],"add_generation_prompt":false})",
    R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"call00000",)"
    R"("type":"function","function":{"name":"qsf_probe","arguments":"{\"qsf_key\": \"y\"}"}}]}],)"
    R"("tools":[{"type":"function","function":{"name":"qsf_tool","description":"x","parameters":{"type":"object",)"
    R"("properties":{"z":{"type":"string","description":"x"}},"required":["z"]}}}],"add_generation_prompt":false})",
    R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":)"
    R"("functions.qsf_probe:0","type":"function","function":{"name":"qsf_probe","arguments":{"qsf_key":"y"}}}]}],)"
    R"("tools":[{"type":"function","function":{"name":"qsf_tool","description":"x","parameters":{"type":"object",)"
    R"("properties":{"z":{"type":"string","description":"x"}},"required":["z"]}}}],"add_generation_prompt":false})"};
/// The prompt of such an answer.
constexpr std::string_view kAsked =
    R"({"messages":[{"role":"user","content":"x"}],)"
    R"("tools":[{"type":"function","function":{"name":"qsf_tool","description":"x","parameters":{"type":"object",)"
    R"("properties":{"z":{"type":"string","description":"x"}},"required":["z"]}}}],"add_generation_prompt":true})";

/// Renders a conversation, or returns an empty text if the template refuses it.
Result<RenderedText> try_render(const Session& session, Conversation conversation, std::string_view values,
                                std::span<std::byte> memory) {
  conversation.values = values;
  const Result<RenderedText> made = render(session, conversation, memory);
  if (made || (made.error().code != ErrorCode::template_refusal && made.error().code != ErrorCode::bad_template)) {
    return made;
  }
  return RenderedText{{}, {}, memory};
}

/// Returns the object that a text begins with; empty if it has no end.
std::string_view object_of(std::string_view text) {
  bool quoted = false;
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = quoted && c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

/// Returns the place after the last mark that closes a thought.
std::size_t after_thoughts(std::string_view text) {
  std::size_t at = 0;
  for (const answers::Syntax& syntax : answers::kSyntaxes) {
    const std::size_t found = syntax.use == answers::Use::thought ? text.rfind(syntax.close) : text.npos;
    if (found != text.npos) at = std::max(at, found + syntax.close.size());
  }
  return at;
}

/// Returns the beginning of a text that is white space and a mark that closes a call; empty if there is none.
std::string_view closing(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  for (const answers::Syntax& syntax : answers::kSyntaxes) {
    const bool closes = syntax.use == answers::Use::call && !syntax.close.empty();
    if (closes && text.substr(begin).starts_with(syntax.close)) return text.substr(0, begin + syntax.close.size());
  }
  return {};
}

bool read_object(std::string_view text, CallForm& form, std::span<std::byte> memory) {
  Store store(memory);
  const Result<json::Document> read = json::Document::read(text, store);
  if (!read) return false;
  const json::Document& d = *read;
  for (std::uint32_t i = d[json::Document::kRoot].first; i != 0; i = d[i].next) {
    const json::Value& value = d[i];
    bool kept = false;
    if (value.kind == json::Kind::string && value.text == kName) {
      kept = form.name_key.set(value.name);
    } else if (value.kind == json::Kind::object && d.member(i, kKey) != 0) {
      kept = form.arguments_key.set(value.name);
    } else if (form.n_members < form.members.size()) {
      kept = form.members[form.n_members].set(value.name);
      ++form.n_members;
    }
    if (!kept) return false;
  }
  return !form.name_key.view().empty() && !form.arguments_key.view().empty();
}

CallForm form_of(std::string_view answer, std::span<std::byte> memory) {
  CallForm form;
  answer.remove_prefix(std::min(after_thoughts(answer), answer.size()));
  answer.remove_prefix(std::min(answer.find_first_not_of('\n'), answer.size()));
  const std::size_t name = answer.find(kName), key = answer.find(kKey), brace = answer.find('{');
  if (name == answer.npos || key == answer.npos) return form;
  if (brace < name) {
    std::size_t begin = brace;
    const std::string_view before = answer.substr(0, brace);
    const std::size_t last = before.find_last_not_of(" \n");
    form.list = last != before.npos && before[last] == '[';
    if (form.list) begin = last;
    const std::string_view call = answer.substr(begin);
    (void)form.tail.set(closing(call.substr(object_of(call).size())));
    if (form.lead.set(answer.substr(0, begin)) && read_object(object_of(answer.substr(brace)), form, memory)) {
      form.kind = CallKind::json;
    }
    return form;
  }
  const std::string_view after = answer.substr(name + kName.size());
  const std::size_t arguments = after.find('{');
  if (!form.lead.set(answer.substr(0, name)) || after.empty()) return form;
  const bool is_json =
      arguments != after.npos && arguments < after.find(kKey) &&
      after.substr(arguments + 1).find_first_not_of(" \n") == after.find("\"qsf_key\"") - arguments - 1;
  if (is_json && form.between.set(after.substr(0, arguments))) {
    form.kind = CallKind::named;
    (void)form.tail.set(closing(after.substr(arguments + object_of(after.substr(arguments)).size())));
  } else if (form.between.set(after.substr(0, 1))) {
    form.kind = CallKind::other;
  }
  return form;
}

}  // namespace

Result<CallForm> CallForm::read(const Session& session, const Conversation& conversation, std::span<std::byte> memory) {
  QSF_LET(asked, try_render(session, conversation, kAsked, memory));
  for (const std::string_view probe : kProbes) {
    QSF_LET(made, try_render(session, conversation, probe, asked.rest));
    const auto same = std::ranges::mismatch(made.text, asked.text).in1 - made.text.begin();
    // Tools that are written after the messages hide where the answer begins.
    std::size_t begin = static_cast<std::size_t>(same);
    if (asked.text.substr(begin).find(kTool) != asked.text.npos) continue;
    // Half of a mark may be the same too.
    while (begin > 0 && begin < made.text.size() &&
           std::string_view("\n>]:").find(made.text[begin - 1]) == made.text.npos) {
      --begin;
    }
    const CallForm form = form_of(made.text.substr(begin), made.rest);
    if (form.kind != CallKind::none) return form;
  }
  return CallForm();
}

}  // namespace qsf::chat
