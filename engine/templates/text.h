// Forms of texts that several filters, methods and operators share.
#pragma once

#include "templates/machine.h"

namespace qsf::templates {

/// Returns a whole argument, or a default if it is not given or None.
inline std::int64_t whole_argument(Machine& m, const Call& call, std::uint32_t i, std::int64_t otherwise) {
  return !call[i] || call[i].is(Kind::none) ? otherwise : m.whole(call[i]);
}

/// Writes the text with HTML's entities for & < > " and '.
void write_escaped(Writer& out, const Text& text);
/// Returns the text as one that an addition does not escape.
Value mark_safe(Machine& machine, const Value& text);

/// Formats as the operator % and str.format() do. Fails with a place that they do not know.
Value format_percent(Machine& machine, const Text& format, const Value& values);
Value format_braces(Machine& machine, const Text& format, const Arguments& arguments);

}  // namespace qsf::templates
