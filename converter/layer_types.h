// Which layers are of which type, as config.json or GGUF's keys say it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/recipes.h"
#include "converter/settings.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// An exception for each type that the model has. The first of the recipe's keys that is there says it: a list of as
/// many texts as there are layers names the types; a list of other numbers, in config.json, has the layers that are
/// `listed`, in GGUF a number for each layer, which is 0 in `others`; of a single number n, every n-th layer is listed.
/// bad_input or unsupported, naming `file` and the key.
Result<std::vector<LayerException>> read_layer_types(const Recipe& recipe, Naming naming, const Lookup& lookup,
                                                     std::uint32_t n_layers, std::string_view file);

}  // namespace qsf::convert
