#include "converter/attention_rules.h"

#include <algorithm>

#include "converter/settings.h"

namespace qsf::convert {
namespace {

LayerException exception_for(const std::vector<std::uint8_t>& layers, bool where, std::vector<Setting> settings) {
  LayerException out;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    if ((layers[i] != 0) == where) out.layers.push_back(i);
  }
  out.settings = std::move(settings);
  return out;
}

}  // namespace

std::vector<std::uint8_t> last_of_every(std::uint32_t every, std::uint32_t n_layers) {
  std::vector<std::uint8_t> out(n_layers);
  for (std::uint32_t i = 0; i < n_layers; ++i) out[i] = (i + 1) % every == 0 ? 1 : 0;
  return out;
}

void apply_rules(const AttentionRules& rules, ModelSource& model) {
  const auto is = [](std::uint8_t yes) { return yes != 0; };
  const bool all_full = !rules.full.empty() && std::ranges::all_of(rules.full, is);
  model.config.window = all_full ? 0 : rules.window;
  std::vector<LayerException> exceptions;
  if (model.config.window != 0) {
    if (std::ranges::any_of(rules.full, is)) {
      exceptions.push_back(exception_for(rules.full, true, {layer_setting("window", 0)}));
    }
    if (rules.local_theta != 0) {
      std::vector<std::uint8_t> full = rules.full;
      full.resize(model.config.n_layers);
      exceptions.push_back(exception_for(full, false,
                                         {layer_setting("rope_theta", rules.local_theta),
                                          layer_setting("rope_scaled", 0), layer_setting("rope_scale", 1)}));
    }
  }
  if (std::ranges::any_of(rules.no_rope, is)) {
    exceptions.push_back(exception_for(rules.no_rope, true, {layer_setting("rope_dims", 0)}));
  }
  model.layers.exceptions.insert(model.layers.exceptions.begin(), exceptions.begin(), exceptions.end());
}

}  // namespace qsf::convert
