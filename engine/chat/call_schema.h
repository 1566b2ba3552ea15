// The tools of a conversation as texts for grammars: their names, and JSON schemas of their calls.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "chat/call_form.h"
#include "qsf/base/result.h"

namespace qsf::chat {

struct ToolText {
  std::string_view name;
  std::string_view parameters;  // a JSON schema of the arguments
};

struct ToolTexts {
  std::span<const ToolText> tools;
  std::string_view calls;     // a JSON schema of a call, if the form of calls is JSON
  std::span<std::byte> rest;  // memory that is free
};

/// Returns the tools of a conversation, or only the one with a name, as texts in `memory`. `scratch` is used during the
/// call. Fails with bad_argument if there is no such tool, with bad_input for variables that are not JSON, and with
/// out_of_memory.
Result<ToolTexts> tool_texts(const Conversation& conversation, const CallForm& form, std::string_view only,
                             std::span<std::byte> memory, std::span<std::byte> scratch);

}  // namespace qsf::chat
