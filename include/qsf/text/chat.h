// Conversations as the text that a model was trained on. A model's own Jinja template is not run: it is recognised as
// one of the families of engine/text/chat_families.inc, each a row of a table. Nothing is allocated.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

enum class ChatRole : std::uint8_t { system, user, assistant };

struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::string_view content;  // UTF-8; nothing in it is meant as a special token
};

/// What a template takes from outside.
struct ChatTexts {
  std::string_view bos, eos;  // special tokens as they are written
  std::string_view date;      // the day, as ChatFamily::date_format says
};

/// Where a template puts the system's message.
enum class SystemPlace : std::uint8_t {
  none,        // nowhere
  own,         // in a turn of its own
  first_user,  // in front of what the user says first
  last_user,   // in front of what the user said last
};

/// What a template says where the caller gives no system message.
enum class SystemDefault : std::uint8_t { none, known, unknown };

/// Whose white space at both ends is left out.
enum class ChatTrim : std::uint8_t {
  none,
  turns,    // of every turn's message
  answers,  // of the assistant's
  merged,   // as turns, of the first user turn together with the system message in front of it
};

struct ChatTurn {
  std::string_view before = {}, after = {};
};

/// A row of the table. In its texts "{bos}", "{eos}" and "{date}" stand for those of ChatTexts.
struct ChatFamily {
  std::string_view name = {};
  std::array<std::string_view, 5> marks = {};   // each is in the template's text
  std::array<std::string_view, 5> absent = {};  // none is
  std::string_view begin = {};                  // of every conversation
  SystemPlace place = SystemPlace::own;
  ChatTurn system = {};
  SystemDefault has_default = SystemDefault::none;
  std::string_view default_system = {};
  ChatTurn user = {}, assistant = {};
  std::string_view answer = {};  // asks for one
  std::string_view end = {};     // the special token that ends an answer
  ChatTrim trim = ChatTrim::none;
  std::string_view thought = {};      // of earlier answers, only what follows the last of these is remembered
  std::string_view date_format = {};  // of strftime(); empty where no day is named
  std::string_view final_mark = {};   // special tokens behind which a model that thinks first gives its answer
};

/// The family of a template's text; nullptr where it is none of them. Linear in the text.
const ChatFamily* find_chat_family(std::string_view chat_template);
std::span<const ChatFamily> chat_families();

/// Takes a rendered text piece by piece. `own`: the template's own text, in which special tokens are meant.
struct ChatSink {
  void* context = nullptr;
  void (*put)(void* context, std::string_view text, bool own) = nullptr;
};

/// Writes a conversation that ends with the user's message, and what asks for the answer to it. bad_argument for roles
/// out of turn (a system message only in front, then user and assistant alternately); unsupported for a system message
/// where the template has no place for one, or for none where its default is not known.
Status render_chat(const ChatFamily& family, const ChatTexts& texts, std::span<const ChatMessage> messages,
                   const ChatSink& sink);
/// Writes a text of the row, such as ChatFamily::end, with what stands for its places.
void put_chat_text(std::string_view text, const ChatTexts& texts, const ChatSink& sink);

}  // namespace qsf
