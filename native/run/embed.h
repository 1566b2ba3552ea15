// Embeddings of texts: one line of JSON each, or float32 in a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "native/run/options.h"

namespace qsf::run {

/// Embeds the options' texts, tokens, or lines of a file or of standard input. Without pooling, writes a line for every
/// position. Returns the number of lines that could not be embedded: each is reported with its number, and `null`
/// stands for it among lines of JSON. `inputs` are files that are read.
Result<std::uint64_t> embed_all(const Options& o, Host& host, std::span<const std::string> inputs);

}  // namespace qsf::run
