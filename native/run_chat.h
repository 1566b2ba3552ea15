// qsf-run --chat: a conversation in the form that the model's own template gives it.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "native/chat.h"
#include "native/run_generate.h"
#include "native/run_options.h"

namespace qsf::run {

/// The ids of the prompt as the user's message behind --system-prompt.
Result<std::vector<std::uint32_t>> ask(const Options& options, Host& host, const Chat& chat);

/// Shows answers on standard output; what a model thinks in front of one, on standard error. Both must outlive it.
std::function<Status(std::string_view)> speaker(Session& session, const Chat& chat);

/// Messages from standard input, a line each, until its end or a signal. The process's exit code.
int converse(const Options& options, Host& host, Prompt prompt);

}  // namespace qsf::run
