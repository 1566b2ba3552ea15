// A chat template with memory, the local time, and messages as JSON.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "qsf/engine.h"
#include "qsf/templates/template.h"

namespace qsf {

struct ChatMessage {
  std::string_view role;       // system, user, assistant, or any other that the template knows
  std::string_view content;    // UTF-8; a special token in it is ordinary text
  std::string_view more = {};  // further members in JSON, such as "tool_calls": [...]
};

/// Returns the number of tokens of a prompt, with those that the model expects before and after it. The text may be
/// longer than the context. Errors: bad_text without a tokenizer or for invalid UTF-8; cancelled.
Result<std::uint32_t> count_tokens(Session& session, std::string_view text);
/// Runs the template in memory of its own, for templates without a model. Errors: those of Template::parse() and
/// Template::render().
Result<std::string> render_template(std::string_view text, const templates::Variables& variables);

/// Returns the number of tokens of that text, with the model's begin token in front if it expects one. Special tokens
/// come only from the template. The text may be longer than the context. Errors: those above; bad_text without a
/// tokenizer; cancelled.
Result<std::uint32_t> count_tokens(Session& session, std::string_view text, const templates::Variables& variables);

/// Returns the local time.
templates::Time local_now();
/// Adds a text as a string in JSON.
void append_json(std::string& out, std::string_view text);
/// Adds a message as an object in JSON.
void append_json(std::string& out, const ChatMessage& message);
/// Returns the variables of a conversation as a JSON object. `tools` is a list in JSON, or empty.
std::string chat_variables(std::span<const ChatMessage> messages, std::string_view tools, bool add_generation_prompt);

}  // namespace qsf
