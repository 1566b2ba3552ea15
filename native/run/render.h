// qsf-run --render: the text that messages become by a chat template.
#pragma once

#include "native/run/options.h"
#include "qsf/engine.h"

namespace qsf::run {

/// Prints the rendering of --render by --chat-template, or by the session's own template. `session` may be null if
/// there is a template. Returns the process's exit code.
int render(const Options& options, Session* session);

}  // namespace qsf::run
