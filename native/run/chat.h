// qsf-run --chat: a conversation in the form of the model's own template.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/chat.h"
#include "native/run/generate.h"
#include "native/run/json.h"
#include "native/run/options.h"

namespace qsf::run {

/// Returns the text of --chat-template, or nothing without it.
Result<std::string> read_template(const Options& options);
/// Returns the variables of --template-arg. A value that is not JSON is a text.
Json arguments_of(const Options& options);
/// Opens the chat template of the options, or the model's own, in the memory that the guide leaves.
Result<Chat> open_chat(const Options& options, Session& session, const chat::Guide* guide);

/// Asks for the answer to the prompt as the user's message, after --system-prompt if there is one.
Result<Question> ask(const Options& options, Host& host, const Chat& chat, std::span<const std::string_view> stops);

/// Answers messages from standard input, one on each line, until its end or a signal. After an answer with calls the
/// next lines are their results. Each answer follows the guide's grammar, if there is one. Returns the process's exit
/// code.
int converse(const Options& options, Host& host, Prompt prompt, chat::Guide* guide);

}  // namespace qsf::run
