#include "converter/model/layer_types.h"

#include <algorithm>
#include <string>

#include "converter/model/attention_rules.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

using Listed = std::vector<std::uint8_t>;  // [n_layers]

/// Returns the layers that a key of numbers lists; empty if it lists none.
Listed listed_layers(const Json& value, const LayerTypes& rule, Naming naming, std::uint32_t n_layers) {
  if (value.is_number() && value != 0 && layers_form().holds(value.get<double>())) {
    return last_of_every(value.get<std::uint32_t>(), n_layers);
  }
  Listed listed(n_layers);
  const bool by_layer = naming == Naming::gguf || rule.by_layer;
  if (!value.is_array() || (by_layer && value.size() != n_layers)) return {};
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_number()) return {};
    if (by_layer) {
      if (rule.by_layer && value[i] != 0 && value[i] != 1) return {};
      listed[i] = value[i] != 0 ? 1 : 0;
      continue;
    }
    const auto layer = as_u64(value[i]);
    if (!layer || *layer >= n_layers) return {};
    listed[*layer] = 1;
  }
  return listed;
}

/// Returns a lookup that finds a layer's number in place of a list of one for each layer.
Lookup of_one_layer(const Lookup& lookup, std::uint32_t layer, std::uint32_t n_layers) {
  const auto value = [&lookup, layer, n_layers](const std::string& key) {
    const Json found = lookup(key);
    return found.is_array() && found.size() == n_layers ? Json(found[layer]) : found;
  };
  return {.value = value, .prefix = lookup.prefix};
}

}  // namespace

Result<std::vector<LayerException>> read_layer_lists(const Recipe& recipe, Naming naming, const Lookup& lookup,
                                                     std::uint32_t n_layers, std::string_view file) {
  std::vector<Setting> listed;
  for (const Setting& setting : recipe.layers.every) {
    if (setting.value.by_layer) listed.push_back(setting);
  }
  std::vector<LayerException> out;
  for (std::uint32_t layer = 0; layer < n_layers && !listed.empty(); ++layer) {
    QSF_LET(settings, resolve_layer(listed, recipe, naming, of_one_layer(lookup, layer, n_layers), file));
    out.push_back({.layers = {layer}, .settings = std::move(settings)});
  }
  return out;
}

Result<std::vector<LayerException>> read_layer_types(const Recipe& recipe, Naming naming, const Lookup& lookup,
                                                     std::uint32_t n_layers, std::string_view file) {
  const LayerTypes& rule = recipe.types;
  std::vector<LayerException> out;
  if (rule.types.empty()) return out;
  const std::vector<std::string>& keys = naming == Naming::gguf ? rule.gguf : rule.hugging_face;
  const auto key = std::ranges::find_if(keys, [&](const std::string& k) { return !lookup(k).is_null(); });
  if (key == keys.end()) {
    return make_error(ErrorCode::bad_input, "{}: \"{:.60}\" is missing; it names the type of each layer", file,
                      keys.empty() ? std::string("?") : lookup.in_file(keys.front()));
  }
  const Json value = lookup(*key);
  const bool named = value.is_array() && value.size() == n_layers && as_text(value[0]);
  const Listed listed = named ? Listed() : listed_layers(value, rule, naming, n_layers);
  if (!named && (listed.empty() || rule.listed.empty() || rule.others.empty())) {
    return make_error(ErrorCode::bad_input, "{}: \"{:.60}\" does not name the type of each of {} layers", file,
                      lookup.in_file(*key), n_layers);
  }
  std::vector<std::vector<std::uint32_t>> layers(rule.types.size());
  for (std::uint32_t i = 0; i < n_layers; ++i) {
    const std::string* text = named ? as_text(value[i]) : nullptr;
    const std::string name = text ? *text : named ? "?" : listed[i] != 0 ? rule.listed : rule.others;
    const auto type = std::ranges::find(rule.types, name, &LayerTypes::Type::name);
    if (type == rule.types.end()) {
      return make_error(ErrorCode::unsupported, "{}: the layer type \"{:.60}\" is not supported", file, name);
    }
    layers[static_cast<std::size_t>(type - rule.types.begin())].push_back(i);
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].empty()) continue;
    QSF_LET(settings, resolve_layer(rule.types[i].settings, recipe, naming, lookup, file));
    if (!settings.empty()) out.push_back({.layers = layers[i], .settings = std::move(settings)});
  }
  return out;
}

}  // namespace qsf::convert
