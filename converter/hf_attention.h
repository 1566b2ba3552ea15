// config.json: how far the layers' attention looks back, and how positions are turned.
#pragma once

#include "converter/json.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Into config and layers, which must hold sizes and the recipe's rules.
Status read_attention(const Json& config, ModelSource& out);

}  // namespace qsf::convert
