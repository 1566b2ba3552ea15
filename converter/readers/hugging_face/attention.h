// Attention in config.json: the windows of layers, and RoPE.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Fills config and layers of `out`, which must have sizes and the recipe's rules.
Status read_attention(const Json& config, LoadedModel& out);

}  // namespace qsf::convert
