// Values in calls: JSON, Python's literals, and Gemma's objects with names without quotes. All become JSON.
#pragma once

#include <cstdint>

#include "answers/out.h"
#include "answers/source.h"

namespace qsf::answers {

/// The deepest nesting of lists and objects.
inline constexpr std::uint32_t kMaxDepth = 64;

/// Reads a value and writes it as JSON without blanks between its parts. Returns false if there is no value.
bool copy_value(Source& in, Out& out, std::uint32_t depth = 0);

/// Whether a text begins here.
bool begins_text(const Source& in);
/// Reads a text in quotes, or between marks that stand for quotes, and gives its bytes to `put`.
bool read_text(Source& in, Out& out, void (Out::*put)(char));

/// Writes a text as a string in JSON, with the texts of its marks.
void write_string(std::string_view text, Out& out);

}  // namespace qsf::answers
