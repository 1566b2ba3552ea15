#include "qsf/text/chat.h"

#include <algorithm>

#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf {
namespace {

#include "text/chat_families.inc"

/// Whether the template's text goes on with the mark. Its quotes may be of either kind, and a line end may be written
/// as in a literal.
bool goes_on(std::string_view text, std::string_view mark) {
  std::size_t at = 0;
  for (const char wanted : mark) {
    if (at == text.size()) return false;
    const char c = text[at] == '"' ? '\'' : text[at];
    if (wanted == '\n' && c == '\\' && at + 1 < text.size() && text[at + 1] == 'n') {
      at += 2;
      continue;
    }
    if (c != wanted) return false;
    ++at;
  }
  return true;
}

bool contains(std::string_view text, std::string_view mark) {
  const std::string_view firsts = mark.front() == '\'' ? "'\"" : mark.front() == '\n' ? "\n\\" : mark.substr(0, 1);
  for (std::size_t at = 0; (at = text.find_first_of(firsts, at)) != text.npos; ++at) {
    if (goes_on(text.substr(at), mark)) return true;
  }
  return false;
}

/// What Python's str.strip() takes away.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

struct Ends {
  bool front = true, back = true;
};

std::string_view trimmed(std::string_view text, Ends ends) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Decoded c = utf8::decode(text, at);
    const std::size_t next = at + c.size;
    if (c.form != utf8::Form::valid || !is_space(c.code)) {
      begin = std::min(begin, at);
      end = next;
    }
    at = next;
  }
  if (!ends.front) begin = 0;
  if (!ends.back) end = text.size();
  return begin < end ? text.substr(begin, end - begin) : std::string_view{};
}

Status check_roles(std::span<const ChatMessage> messages) {
  ChatRole due = ChatRole::user;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatRole role = messages[i].role;
    if (role == ChatRole::system && i == 0) continue;
    if (role != due) {
      return make_error(ErrorCode::bad_argument,
                        "message {} is out of turn: after a system message at most, user and assistant alternate", i);
    }
    due = due == ChatRole::user ? ChatRole::assistant : ChatRole::user;
  }
  if (due == ChatRole::assistant) return {};
  return make_error(ErrorCode::bad_argument, "a conversation must end with the user's message to be answered");
}

class Renderer {
 public:
  Renderer(const ChatFamily& family, const ChatTexts& texts, const ChatSink& sink) : f_(family), t_(texts), s_(sink) {}

  void own(std::string_view text) const { put_chat_text(text, t_, s_); }
  void content(std::string_view text) const {
    if (!text.empty()) s_.put(s_.context, text, false);
  }

  void conversation(const ChatMessage* system, std::span<const ChatMessage> turns) const {
    own(f_.begin);
    const bool has_system = system != nullptr || f_.has_default == SystemDefault::known;
    if (has_system && f_.place == SystemPlace::own) system_turn(system);
    const std::size_t merged = !has_system || f_.place == SystemPlace::own ? turns.size()
                               : f_.place == SystemPlace::first_user       ? 0
                                                                           : turns.size() - 1;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      if (turns[i].role == ChatRole::user) {
        user_turn(turns[i].content, i == merged ? system : nullptr);
      } else {
        answer(turns[i].content);
      }
    }
    own(f_.answer);
  }

 private:
  bool trims() const { return f_.trim == ChatTrim::turns || f_.trim == ChatTrim::merged; }

  void system_turn(const ChatMessage* system) const {
    own(f_.system.before);
    if (system == nullptr) {
      own(f_.default_system);
    } else {
      content(trims() ? trimmed(system->content, {}) : system->content);
    }
    own(f_.system.after);
  }

  void user_turn(std::string_view text, const ChatMessage* system) const {
    own(f_.user.before);
    if (system != nullptr) {
      own(f_.system.before);
      content(system->content);
      own(f_.system.after);
    }
    content(trims() ? trimmed(text, {.front = system == nullptr || f_.trim != ChatTrim::merged}) : text);
    own(f_.user.after);
  }

  void answer(std::string_view text) const {
    if (const std::size_t at = f_.thought.empty() ? text.npos : text.rfind(f_.thought); at != text.npos) {
      text.remove_prefix(at + f_.thought.size());
      text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
    }
    own(f_.assistant.before);
    content(f_.trim == ChatTrim::none ? text : trimmed(text, {}));
    own(f_.assistant.after);
  }

  const ChatFamily& f_;
  const ChatTexts& t_;
  const ChatSink& s_;
};

}  // namespace

std::span<const ChatFamily> chat_families() { return kFamilies; }

const ChatFamily* find_chat_family(std::string_view chat_template) {
  // A line end in front of the first tag is text, unless the tag takes it away.
  const std::size_t tag = chat_template.find('{');
  if (tag != 0 && (tag == chat_template.npos || tag + 2 >= chat_template.size() || chat_template[tag + 2] != '-'))
    return nullptr;
  const auto is_in = [&](std::string_view mark) { return !mark.empty() && contains(chat_template, mark); };
  for (const ChatFamily& family : kFamilies) {
    const bool all =
        std::ranges::all_of(family.marks, [&](std::string_view mark) { return mark.empty() || is_in(mark); });
    if (all && std::ranges::none_of(family.absent, is_in)) return &family;
  }
  return nullptr;
}

void put_chat_text(std::string_view text, const ChatTexts& texts, const ChatSink& sink) {
  struct Place {
    std::string_view name, text;
  };
  const std::array<Place, 3> places{Place{"{bos}", texts.bos}, {"{eos}", texts.eos}, {"{date}", texts.date}};
  while (!text.empty()) {
    const auto* const place = std::ranges::find_if(places, [&](const Place& p) { return text.starts_with(p.name); });
    const bool found = place != places.end();
    const std::size_t size = found ? place->name.size() : std::min(text.find('{', 1), text.size());
    const std::string_view shown = found ? place->text : text.substr(0, size);
    if (!shown.empty()) sink.put(sink.context, shown, true);
    text.remove_prefix(size);
  }
}

Status render_chat(const ChatFamily& family, const ChatTexts& texts, std::span<const ChatMessage> messages,
                   const ChatSink& sink) {
  QSF_TRY(check_roles(messages));
  const ChatMessage* system = messages.front().role == ChatRole::system ? &messages.front() : nullptr;
  if (system != nullptr && family.place == SystemPlace::none) {
    return make_error(ErrorCode::unsupported, "the model's chat template ({}) has no place for a system prompt",
                      family.name);
  }
  if (system == nullptr && family.has_default == SystemDefault::unknown) {
    return make_error(ErrorCode::unsupported,
                      "the model's chat template ({}) has a system prompt of its own that is not known: give one",
                      family.name);
  }
  Renderer(family, texts, sink).conversation(system, messages.subspan(system != nullptr ? 1 : 0));
  return {};
}

}  // namespace qsf
