// qsf-run --chat: a conversation in the form of the model's own template.
#pragma once

#include <functional>
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

/// Returns the ids of the prompt as the user's message, after --system-prompt if there is one.
Result<std::vector<std::uint32_t>> ask(const Options& options, Host& host, const Chat& chat);

/// Returns a sink that shows answers on standard output, and thoughts of the model on standard error. Both arguments
/// must outlive it.
std::function<Status(std::string_view)> speaker(const Session& session, const chat::AnswerForm& form);

/// Answers messages from standard input, one on each line, until its end or a signal. Each answer follows the guide's
/// grammar, if there is one. Returns the process's exit code.
int converse(const Options& options, Host& host, Prompt prompt, chat::Guide* guide);

}  // namespace qsf::run
