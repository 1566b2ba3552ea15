// Regular expressions as ECMAScript writes them, made into terms of UTF-8 bytes. Anchors and looks ahead are exact.
// References to groups, assertions about earlier text and word boundaries are refused, because no regular language has
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/terms.h"
#include "qsf/base/result.h"

namespace qsf::grammar {

enum class Match : std::uint8_t {
  anywhere,  // the expression matches some part of the text, as "pattern" of a JSON schema does
  whole,     // it matches the whole text
};

/// Returns the term of an expression. Fails with bad_input for a mistake, and with unsupported for a feature that is
/// refused; the sentence names the byte.
Result<std::uint32_t> read_regex(std::string_view text, Match match, Terms& terms);

}  // namespace qsf::grammar
