// The form of calls in answers of one template, seen in the call of an earlier turn that the template writes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/chat/conversation.h"

namespace qsf::chat {

enum class CallKind : std::uint8_t {
  none,   // the template writes no calls
  json,   // an object with the name and the arguments, or a list of these
  named,  // a name, a text between, and arguments in JSON
  other,  // a name, and arguments that are not JSON
};

/// A short text.
class ShortText {
 public:
  static constexpr std::size_t kMost = 160;  // bytes

  /// Returns false, and stays empty, if the text is longer.
  bool set(std::string_view text) {
    size_ = text.size() <= kMost ? text.copy(bytes_.data(), kMost) : 0;
    return text.size() <= kMost;
  }
  bool add(std::string_view text) {
    if (text.size() > kMost - size_) return false;
    size_ += text.copy(bytes_.data() + size_, text.size());
    return true;
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kMost> bytes_{};
  std::size_t size_ = 0;
};

struct CallForm {
  static constexpr std::size_t kMaxMembers = 4;

  /// Returns the form in the template of a conversation, which is rendered in `memory`. A template that refuses calls
  /// has none. Errors: those of render(), except the template's refusal and mistakes.
  static Result<CallForm> read(const Session& session, const Conversation& conversation, std::span<std::byte> memory);

  CallKind kind = CallKind::none;
  ShortText lead;     // from the beginning of the answer to the object or list, or to the name
  ShortText between;  // from the name to the arguments; if kind is other, one byte
  ShortText tail;     // from the end of the object, list or arguments to the end of a closing mark, if there is one
  ShortText name_key, arguments_key;
  std::array<ShortText, kMaxMembers> members;  // further members of the object, by name
  std::size_t n_members = 0;
  bool list = false;
};

}  // namespace qsf::chat
