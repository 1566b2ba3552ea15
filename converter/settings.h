// Values of the keys of layers.def as recipes and configurations write them, and layers made from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "converter/json.h"
#include "converter/recipes.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// What layers.def says of one key: a number, or the name of an enumeration's value.
struct KeyForm {
  LayerKey key;
  bool real = false;                                                  // f32
  std::optional<double> (*number_named)(std::string_view) = nullptr;  // null: the key has no names
  std::optional<double> (*number_in)(std::string_view) = nullptr;     // of config.json's words, where they differ
  std::string (*names)() = nullptr;
};

/// Of an exception's "first".
const KeyForm& first_form();
/// In the order of kSizes, kLayerKeys and kModelKeys.
std::span<const KeyForm> size_forms();
std::span<const KeyForm> layer_forms();
std::span<const KeyForm> model_forms();

/// The number that `json` is as a value of the key: a number in its range, the name of a value, and a truth as 0 or 1
/// where these are the range. bad_input, naming `file` and the key, for all else.
Result<double> read_value(const Json& json, const KeyForm& form, std::string_view file);

/// Hugging Face's name of an activation.
std::optional<Activation> activation_named(std::string_view name);
/// A key of a kind of layer by its name, which must be one.
Setting layer_setting(std::string_view name, double number);
/// The same of the whole model.
Setting model_setting(std::string_view name, double number);

/// The value of a key of the source's configuration; null when it has none.
using Lookup = std::function<Json(const std::string& key)>;

/// The same settings with numbers only.
Result<std::vector<Setting>> resolve_layer(std::span<const Setting> settings, const Recipe& recipe, Naming naming,
                                           const Lookup& lookup, std::string_view file);
/// The same rules with numbers only. bad_input when a key is missing that has no default or holds what it cannot;
/// `file` names the configuration.
Result<LayerRules> resolve(const Recipe& recipe, Naming naming, const Lookup& lookup, std::string_view file);

/// What `recipe` gives way to where the source's configuration has experts: the recipe that it names for them. Without
/// either, itself.
Result<std::shared_ptr<const Recipe>> recipe_with_experts(std::shared_ptr<const Recipe> recipe, Naming naming,
                                                          const Lookup& lookup);

/// `settings` must be resolved. RoPE goes on turning whole heads when only their width changes.
void apply_settings(std::span<const Setting> settings, LayerKind& kind);
void apply_settings(std::span<const Setting> settings, ModelKind& kind);

}  // namespace qsf::convert
