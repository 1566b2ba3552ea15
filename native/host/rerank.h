// Scores of documents for a query.
#pragma once

#include <string_view>

#include "native/host/host.h"

namespace qsf {

/// Returns the score of a document for a query. Errors: those of chat::rerank() and of Host::next().
Result<float> rerank(Host& host, std::string_view query, std::string_view document);

}  // namespace qsf
