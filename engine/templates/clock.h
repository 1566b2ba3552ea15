// Dates as strftime() writes them in the C locale.
#pragma once

#include <string_view>

#include "templates/writer.h"

namespace qsf::templates {

/// Writes a time. Returns false if the format has a form that is not known.
bool write_time(Writer& out, std::string_view format, const Time& time);

}  // namespace qsf::templates
