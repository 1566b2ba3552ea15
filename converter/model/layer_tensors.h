// The tensors that a source has for its layers.
#pragma once

#include "converter/model/model_source.h"

namespace qsf::convert {

/// Returns whether the source has a tensor of a layer under a name of this role.
bool has_tensor(const LoadedModel& model, Role role, std::uint32_t layer);

}  // namespace qsf::convert
