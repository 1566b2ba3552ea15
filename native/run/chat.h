// qsf-run --chat: a conversation in the form of the model's own template.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "native/host/chat.h"
#include "native/run/generate.h"
#include "native/run/json.h"
#include "native/run/options.h"
#include "native/run/session_file.h"

namespace qsf::run {

/// Returns the text of --chat-template, or nothing without it.
Result<std::string> read_template(const Options& options);
/// Returns the variables of --template-arg. A value that is not JSON is a text.
Json arguments_of(const Options& options);
/// Opens the chat template of the options, or the model's own, in the memory that the guides leave. The guides then
/// hold calls as the options say.
Result<Chat> open_chat(const Options& options, Session& session, std::span<chat::Guide> guides);
/// Returns a guide of the options for each answer, or none if they hold no answer.
Result<std::vector<chat::Guide>> open_guides(const Options& options, Session& session);

/// Adds the prompt to a conversation, as the user's message or as the result of the call that the last answer made.
/// --system-prompt begins a conversation. Takes files of at most `most_bytes` together. Fails with bad_argument if the
/// conversation has another system prompt, or if the last answer made several calls.
Status add_request(const Options& options, std::size_t most_bytes, std::vector<Turn>& turns);

/// Answers messages from standard input, one on each line, until its end or a signal, and adds both to the
/// conversation. After an answer with calls the next lines are their results. Returns the process's exit code.
int converse(const Options& options, Host& host, Prompt prompt, const Extras& extras, std::vector<Turn>& turns);

}  // namespace qsf::run
