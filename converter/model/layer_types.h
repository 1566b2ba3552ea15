// The type of each layer, as config.json or GGUF's keys give it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/recipes/recipes.h"
#include "converter/recipes/settings.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns an exception for each type that the model has. The first of the recipe's keys that is present decides:
/// - a list of one text for each layer names the types;
/// - a list of numbers gives the `listed` layers: in config.json their indices, in GGUF (and with by_layer) one number
/// for
///   each layer, which is 0 for `others`;
/// - one number n lists every n-th layer.
/// Returns bad_input or unsupported, with the names of `file` and the key.
Result<std::vector<LayerException>> read_layer_types(const Recipe& recipe, Naming naming, const Lookup& lookup,
                                                     std::uint32_t n_layers, std::string_view file);

/// Returns the settings of each layer that a source may list by layer. Fails as resolve() does.
Result<std::vector<LayerException>> read_layer_lists(const Recipe& recipe, Naming naming, const Lookup& lookup,
                                                     std::uint32_t n_layers, std::string_view file);

}  // namespace qsf::convert
