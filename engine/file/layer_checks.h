// Checks between keys of one kind of layer.
#pragma once

#include "qsf/file/layer_table.h"

namespace qsf {

/// Checks the agreement of keys that are in their ranges. Fails with bad_section, naming the keys, or unsupported.
Status check_agreement(const LayerKind& kind);

}  // namespace qsf
