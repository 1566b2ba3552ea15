// Letters of ASCII, for names that may be in any case.
#pragma once

namespace qsf {

/// Returns the small letter of a capital, and any other character as it is.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace qsf
