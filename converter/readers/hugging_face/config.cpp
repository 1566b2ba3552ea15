// The sizes, activation and token ids of config.json; attention.cpp reads windows and RoPE.
#include <algorithm>
#include <array>
#include <cmath>

#include "converter/model/layer_types.h"
#include "converter/model/sizes.h"
#include "converter/readers/hugging_face/attention.h"
#include "converter/readers/hugging_face/hugging_face.h"
#include "converter/readers/hugging_face/packed.h"
#include "converter/recipes/recipes.h"
#include "converter/recipes/settings.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kConfigFile = "config.json";

Error unsupported(const char* what, std::string_view value) {
  return make_error(ErrorCode::unsupported, "config.json: {} \"{:.60}\" is not supported", what, value);
}

/// Returns an id, or a list of them, from the first of the two files that has the key. Negative or null means none.
Result<std::vector<std::uint32_t>> read_ids(const Json& generation, const Json& config, std::string_view key) {
  const Json* value = find(generation, key);
  if (!value) value = find(config, key);
  std::vector<std::uint32_t> ids;
  if (!value) return ids;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& item : list) {
    if (!item.is_number_integer()) {
      return make_error(ErrorCode::bad_input, "config.json: \"{}\" is neither a token id nor a list of them", key);
    }
    const std::optional<std::uint64_t> id = as_u64(item);
    if (id && *id >= kNoToken) {
      return make_error(ErrorCode::bad_input, "config.json: \"{}\" is {}, which is no token's id", key, *id);
    }
    if (id) ids.push_back(static_cast<std::uint32_t>(*id));
  }
  return ids;
}

Status read_tokens(const Json& generation, const Json& json, ModelConfig& config) {
  struct Line {
    std::string_view key;
    std::uint32_t* id;
  };
  for (const auto& [key, id] : std::array{Line{"bos_token_id", &config.bos}, Line{"eos_token_id", &config.eos},
                                          Line{"pad_token_id", &config.pad}}) {
    Result<std::vector<std::uint32_t>> ids = read_ids(generation, json, key);
    if (!ids) return ids.error();
    if (!ids->empty()) *id = ids->front();
    if (id == &config.eos) config.all_eos = std::move(*ids);
  }
  return {};
}

}  // namespace

Status read_config(const Json& json, const Json& generation, LoadedModel& out) {
  if (!json.is_object()) return make_error(ErrorCode::bad_input, "config.json is not a JSON object");
  Fields fields(json, kConfigFile);
  const Lookup lookup = lookup_in(json);
  if (!out.recipe) {
    const std::string type = fields.text("model_type", "");
    if (!fields.status()) return fields.status();
    if (type.empty()) return make_error(ErrorCode::bad_input, "config.json: \"model_type\" is missing");
    QSF_LET(known, recipe_for(type));
    QSF_LET(chosen, recipe_with_experts(std::move(known), out.naming, lookup));
    out.recipe = std::move(chosen);
  }
  const Recipe& recipe = *out.recipe;
  out.interleaved_rope = recipe.interleaved(out.naming);

  ModelConfig& config = out.config;
  std::vector<LayerException> by_layer;  // config.json lists no sizes
  QSF_TRY(read_sizes(recipe, out.naming, lookup, kConfigFile, config, by_layer));
  Counts counts(lookup, kConfigFile);
  config.n_guessing = counts.read("num_nextn_predict_layers", layers_form(), 0);
  QSF_TRY(counts.status());
  config.norm_epsilon = static_cast<float>(fields.number("rms_norm_eps", 1e-6));
  if (fields.has("tie_word_embeddings")) config.tied = fields.flag("tie_word_embeddings", false);
  std::string activation = "silu";
  for (const char* key : {"hidden_act", "hidden_activation", "activation_function"}) {
    activation = fields.text(key, activation);
  }
  const bool mlp_bias = fields.flag("mlp_bias", false);
  if (!fields.status()) return fields.status();
  const std::optional<Activation> known = activation_named(activation);
  if (!known && !recipe.sets("activation")) return unsupported("the activation", activation);
  config.activation = known.value_or(Activation::silu);
  for (const Expected& expected : recipe.expected) {
    if (said_otherwise(lookup, expected).empty()) continue;
    return make_error(ErrorCode::unsupported, "config.json: \"{:.60}\" is not {:.40}, which the recipe {:.60} is for",
                      expected.key, shown_value(expected), recipe.name);
  }
  const bool has_names = !name_of(recipe, out.naming, Role::ffn_up_bias, 0).empty();
  if (mlp_bias && !has_names) return unsupported("a model with", "mlp_bias");
  QSF_TRY(check_packing(json));
  for (const TensorName& line : recipe.tensors) {
    for (const std::string& key : line.part.factors) {
      const Json found = lookup(key);
      if (found.is_null()) continue;
      const double factor = found.is_number() ? found.get<double>() : 0;
      if (!(std::fabs(factor) > 1e-6 && std::fabs(factor) < 1e6)) {
        return make_error(ErrorCode::bad_input, "config.json: \"{:.60}\" is {:.40}, which is no factor of weights", key,
                          shown(found));
      }
      out.factors[key] = factor;
    }
  }
  QSF_LET(layers, resolve(recipe, out.naming, lookup, kConfigFile));
  out.layers = std::move(layers);
  QSF_LET(types, read_layer_types(recipe, out.naming, lookup, config.n_layers, kConfigFile));
  out.layers.exceptions.insert(out.layers.exceptions.begin(), types.begin(), types.end());
  QSF_LET(lists, read_layer_lists(recipe, out.naming, lookup, config.n_layers, kConfigFile));
  out.layers.exceptions.insert(out.layers.exceptions.begin(), lists.begin(), lists.end());
  QSF_TRY(read_attention(json, out));
  return read_tokens(generation, json, config);
}

}  // namespace qsf::convert
