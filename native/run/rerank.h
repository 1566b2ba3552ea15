// Documents in the order of their scores for a query.
#pragma once

#include <cstdint>

#include "native/run/options.h"

namespace qsf::run {

/// Scores the lines of the options' file, or of standard input, for the query, and writes them with the best one first:
/// score, number of the line and text, with tabs between them. Returns the number of lines that could not be scored:
/// each is reported with its number.
Result<std::uint64_t> rerank_lines(const Options& o, Host& host);

}  // namespace qsf::run
