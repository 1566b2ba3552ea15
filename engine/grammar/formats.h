// The formats of strings that are held.
#pragma once

#include <cstdint>
#include <string_view>

#include "grammar/terms.h"
#include "qsf/base/result.h"

namespace qsf::grammar {

enum class FormatUse : std::uint8_t {
  held,     // format_term() has its texts
  refused,  // JSON Schema defines it, and it is not held
  none,     // JSON Schema does not define it: it is a remark, which excludes no text
};

FormatUse use_of_format(std::string_view name);
/// Returns the texts of a format that is held.
Result<std::uint32_t> format_term(std::string_view name, Terms& terms);

}  // namespace qsf::grammar
