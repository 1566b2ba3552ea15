// A chat template with memory, the local time, and messages as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "qsf/templates/template.h"

namespace qsf {

struct ChatMessage {
  std::string_view role;     // system, user, assistant, or any other that the template knows
  std::string_view content;  // UTF-8; a special token in it is ordinary text
};

/// Runs the template in memory of its own, for templates without a model. Errors: those of Template::parse() and
/// Template::render().
Result<std::string> render_template(std::string_view text, const templates::Variables& variables);

/// Returns the local time.
templates::Time local_now();
/// Returns the variables of a conversation as a JSON object.
std::string chat_variables(std::span<const ChatMessage> messages, bool add_generation_prompt);

}  // namespace qsf
