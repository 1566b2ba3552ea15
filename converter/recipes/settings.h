// Values of the keys of layers.def as recipes and configurations write them, and the layers made from them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "converter/files/json.h"
#include "converter/recipes/recipes.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// The form of one key in layers.def: a number, or the name of an enumeration's value.
struct KeyForm {
  LayerKey key;
  bool real = false;                                                  // f32
  std::optional<double> (*number_named)(std::string_view) = nullptr;  // null: the key has no names
  std::optional<double> (*number_in)(std::string_view) = nullptr;     // of config.json's words, if they differ
  std::string (*names)() = nullptr;

  /// Returns whether the number is in the key's range, and whole unless the key is real.
  bool holds(double number) const;
};

/// The form of a number of layers, or of n in "every n-th layer".
const KeyForm& layers_form();
/// Return the forms in the order of kSizes, kLayerKeys and kModelKeys.
std::span<const KeyForm> size_forms();
std::span<const KeyForm> layer_forms();
std::span<const KeyForm> model_forms();

/// Returns `json` as a value of the key: a number in its range, the name of a value, or a truth value as 0 or 1 if
/// these are the range. Returns bad_input, with `file` and the key, for anything else. `key` is the file's own name of
/// the key, if it has one.
Result<double> read_value(const Json& json, const KeyForm& form, std::string_view file, std::string_view key = {});

/// Returns the activation with this name in Hugging Face's words.
std::optional<Activation> activation_named(std::string_view name);
/// Returns a setting of a kind of layer. `name` must be a key.
Setting layer_setting(std::string_view name, double number);
/// Returns a setting of the whole model.
Setting model_setting(std::string_view name, double number);

/// The source's configuration.
struct Lookup {
  std::function<Json(const std::string& key)> value;  // returns null for a missing key
  std::string prefix = {};                            // of every key in the file, such as "llama." in GGUF

  Json operator()(const std::string& key) const { return value(key); }
  /// Returns the key as the file has it, for error sentences.
  std::string in_file(std::string_view key) const { return prefix + std::string(key); }
};
/// Returns a lookup in an object, which must outlive the result. "a.b" is the key b of the object a.
Lookup lookup_in(const Json& json);

/// Returns the configuration's value if it is not one of the expected ones, otherwise an empty text.
std::string said_otherwise(const Lookup& lookup, const Expected& expected);

/// Returns the first value for an error sentence: numbers that are not finite are words, as Python's json writes them.
std::string shown_value(const Expected& expected);

/// Returns the same settings with numbers only.
Result<std::vector<Setting>> resolve_layer(std::span<const Setting> settings, const Recipe& recipe, Naming naming,
                                           const Lookup& lookup, std::string_view file);
/// Returns the same rules with numbers only, without the keys that a source lists by layer. Returns bad_input if a key
/// without a default is missing, or has a value that it cannot have. `file` is the configuration's name.
Result<LayerRules> resolve(const Recipe& recipe, Naming naming, const Lookup& lookup, std::string_view file);

/// Returns the recipe that `recipe` names for models with experts if the configuration has experts, otherwise `recipe`.
Result<std::shared_ptr<const Recipe>> recipe_with_experts(std::shared_ptr<const Recipe> recipe, Naming naming,
                                                          const Lookup& lookup);

/// Applies resolved settings. If only the width of heads changes, RoPE still rotates whole heads.
void apply_settings(std::span<const Setting> settings, LayerKind& kind);
void apply_settings(std::span<const Setting> settings, ModelKind& kind);

}  // namespace qsf::convert
