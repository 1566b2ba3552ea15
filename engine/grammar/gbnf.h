// Grammars in GBNF, the notation of llama.cpp: rules "name ::= parts" with texts in quotes, classes of characters,
// groups, counts and references to rules.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/terms.h"
#include "qsf/base/result.h"

namespace qsf::grammar {

/// Returns the term of the rule "root". Fails with bad_input for a mistake, a rule without a definition and rules that
/// have no text; with unsupported for a rule that begins with itself.
Result<std::uint32_t> read_gbnf(std::string_view text, Terms& terms);

}  // namespace qsf::grammar
