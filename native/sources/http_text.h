// A whole small answer of a server.
#pragma once

#include <cstdint>
#include <string>

#include "native/sources/source.h"
#include "qsf/base/result.h"

namespace qsf {

/// Returns the body of an answer with status 200, of at most `most` bytes. Takes the token, the time limits and the
/// attempts of the options, and sets SourceOptions::status if the server refuses. Errors: network_error, http_status,
/// unsupported (a longer body), unsupported_host (no libcurl), out_of_memory.
Result<std::string> http_text(const std::string& url, const SourceOptions& options, std::uint64_t most);

}  // namespace qsf
