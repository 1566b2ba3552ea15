// JSON files that options name.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf::run {

using Json = nlohmann::ordered_json;

/// Returns the value in a file of at most `limit` bytes, which `option` names. Errors: those of read_text(); bad_input
/// if its lists are nested too deep, an object has a key twice, or it is not JSON; `instead` names the expected
/// content.
Result<Json> read_json(const std::string& path, std::size_t limit, std::string_view option, std::string_view instead);

}  // namespace qsf::run
