// Embeddings of texts: one line of JSON each, or float32 in a file.
#pragma once

#include <span>
#include <string>

#include "native/run_options.h"

namespace qsf::run {

/// Embeds what the options give: texts, tokens, or lines of a file or of standard input. Without pooling a line for
/// every position. `inputs` are files that are read.
Status embed_all(const Options& o, Host& host, std::span<const std::string> inputs);

}  // namespace qsf::run
