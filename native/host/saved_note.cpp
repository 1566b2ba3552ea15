#include "native/host/saved_note.h"

#include <memory>
#include <span>
#include <utility>

#include "native/host/chat_template.h"
#include "qsf/base/json.h"
#include "qsf/base/store.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

/// Bytes of values for each byte of a conversation, of which short messages take the most, and in addition.
constexpr std::size_t kForByte = 32, kAtLeast = 64 << 10;

/// Adds a value as it was read, without spaces.
void append_value(std::string& out, const json::Document& note, std::uint32_t id) {
  const json::Value& value = note[id];
  const bool is_object = value.kind == json::Kind::object;
  switch (value.kind) {
    case json::Kind::null:
      out += "null";
      return;
    case json::Kind::boolean:
      out += value.truth ? "true" : "false";
      return;
    case json::Kind::number:
      out += value.text;
      return;
    case json::Kind::string:
      append_json(out, value.text);
      return;
    case json::Kind::array:
    case json::Kind::object:
      break;
  }
  out += is_object ? '{' : '[';
  for (std::uint32_t at = value.first; at != 0; at = note[at].next) {
    if (at != value.first) out += ',';
    if (is_object) {
      append_json(out, note[at].name);
      out += ':';
    }
    append_value(out, note, at);
  }
  out += is_object ? '}' : ']';
}

/// Reads a message. Returns false if its role or its content is no text.
bool read_turn(const json::Document& note, std::uint32_t message, Turn& turn) {
  if (note[message].kind != json::Kind::object) return false;
  const std::uint32_t role = note.member(message, "role"), content = note.member(message, "content");
  for (const std::uint32_t text : {role, content}) {
    if (text == 0 || note[text].kind != json::Kind::string) return false;
  }
  turn = {std::string(note[role].text), std::string(note[content].text)};
  for (std::uint32_t at = note[message].first; at != 0; at = note[at].next) {
    if (at == role || at == content) continue;
    if (!turn.more.empty()) turn.more += ',';
    append_json(turn.more, note[at].name);
    append_value(turn.more += ':', note, at);
  }
  return true;
}

Error not_a_note() {
  return make_error(ErrorCode::bad_input, "the saved sequence's note is not that of a conversation of texts");
}

}  // namespace

Result<SavedNote> SavedNote::read(std::string_view text) {
  SavedNote out;
  if (text.empty()) return out;
  const std::size_t bytes = kAtLeast + kForByte * text.size();
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);  // only the bytes in use are ever touched
  Store store({memory.get(), bytes});
  QSF_LET(note, json::Document::read(text, store));
  const json::Value& root = note[json::Document::kRoot];
  if (root.kind != json::Kind::object) return not_a_note();
  if (const std::uint32_t rest = note.member(json::Document::kRoot, "rest"); rest != 0) {
    if (note[rest].kind != json::Kind::string) return not_a_note();
    out.rest = note[rest].text;
  }
  const std::uint32_t messages = note.member(json::Document::kRoot, "messages");
  if (messages == 0) return out;
  if (note[messages].kind != json::Kind::array) return not_a_note();
  for (std::uint32_t at = note[messages].first; at != 0; at = note[at].next) {
    Turn turn;
    if (!read_turn(note, at, turn)) return not_a_note();
    out.turns.push_back(std::move(turn));
  }
  return out;
}

std::string SavedNote::text() const {
  if (turns.empty() && rest.empty()) return {};
  std::string out = "{";
  if (!rest.empty()) {
    out += "\"rest\":";
    append_json(out, rest);
  }
  if (!turns.empty()) {
    out += rest.empty() ? "\"messages\":[" : ",\"messages\":[";
    for (const Turn& turn : turns) {
      if (&turn != turns.data()) out += ',';
      append_json(out, ChatMessage{turn.role, turn.content, turn.more});
    }
    out += ']';
  }
  return out += '}';
}

}  // namespace qsf
