// The plan of a session as JSON, for receipts and benchmarks.
#pragma once

#include "native/run/json.h"
#include "qsf/engine.h"

namespace qsf::run {

Json plan_of(const Session& session);

}  // namespace qsf::run
