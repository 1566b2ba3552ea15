// Scores of documents for a query, by models that were trained for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"
#include "qsf/engine.h"

namespace qsf::chat {

/// The name of the chat template in which {query} and {document} are replaced by the texts of a pair.
inline constexpr std::string_view kRerankTemplate = "chat.template.rerank";

/// Begins the score of a document for a query, for which the sequence begins again. Step::embedding follows once, and
/// Session::embedding() is then the score, [1]: a larger one is a better document for the same query. Scores of models
/// that answer yes or no are from 0 to 1, others are any number. Special tokens come only from the template. Uses
/// `memory` during the call only. Errors: unsupported for a model that is no reranker; bad_argument for an empty text;
/// context_full if the pair does not fit in the context; those of Session::tokenize().
Status rerank(Session& session, std::string_view query, std::string_view document, std::span<std::byte> memory,
              std::uint32_t sequence = 0);

}  // namespace qsf::chat
