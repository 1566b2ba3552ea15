#include "converter/model/layer_tensors.h"

#include <algorithm>

namespace qsf::convert {

bool has_tensor(const LoadedModel& model, Role role, std::uint32_t layer) {
  return std::ranges::any_of(model.recipe->tensors, [&](const TensorName& line) {
    const std::string& name = line.names.in(model.naming);
    return line.role == role && !name.empty() &&
           std::ranges::find(model.tensors, of_layer(name, layer), &LoadedTensor::name) != model.tensors.end();
  });
}

}  // namespace qsf::convert
