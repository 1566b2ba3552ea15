// The plan of a session as JSON, for receipts and benchmarks.
#pragma once

#include <nlohmann/json.hpp>

#include "qsf/engine.h"

namespace qsf::run {

using Json = nlohmann::ordered_json;

Json plan_of(const Session& session);

}  // namespace qsf::run
