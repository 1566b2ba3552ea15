// Messages of a conversation: lines, results of calls, and answers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/chat_template.h"
#include "native/host/saved_note.h"
#include "native/run/answer.h"
#include "native/run/options.h"

namespace qsf::run {

inline constexpr std::string_view kSystem = "system", kUser = "user", kAssistant = "assistant", kTool = "tool";

/// Begins a conversation with --system-prompt, if there is one. Fails with bad_argument if the conversation has another
/// system prompt.
Status begin_turns(const Options& options, std::vector<Turn>& turns);
/// Returns the messages of the turns and of the request after them. Both must outlive the messages.
std::vector<ChatMessage> messages_of(std::span<const Turn> turns, std::span<const Turn> asked);

/// Returns the calls of the last turn if that is an answer; their arguments are left out.
std::vector<ToolCall> last_calls(std::span<const Turn> turns);
/// Returns the number of calls in all answers.
std::size_t count_calls(std::span<const Turn> turns);

/// Adds a line to the request after the turns: as the result of the next call of the last turn, or as the user's
/// message if that has no calls. Returns the calls that still need a result; an answer can follow if there are none.
std::vector<ToolCall> add_line(std::span<const Turn> turns, const std::string& line, std::vector<Turn>& asked);
void add_answer(const Answer& answer, std::vector<Turn>& turns);

}  // namespace qsf::run
