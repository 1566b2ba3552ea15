// config.json: sizes, activation, token ids; hf_attention.cpp has windows and positions.
#include <algorithm>
#include <array>

#include "converter/hf_attention.h"
#include "converter/hugging_face.h"
#include "converter/layer_types.h"
#include "converter/packed.h"
#include "converter/settings.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kConfigFile = "config.json";

Error unsupported(const char* what, std::string_view value) {
  return make_error(ErrorCode::unsupported, "config.json: {} \"{:.60}\" is not supported", what, value);
}

/// An id, or a list of them, from the first of the two files that has the key. Negative or null: none.
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

/// What config.json says otherwise; empty where it says what is expected, or nothing.
std::string said(const Json& json, const Expected& expected) {
  const Json* found = find(json, expected.key);
  if (!found) return {};
  const std::string value = found->dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::ranges::find(expected.values, value) != expected.values.end() ? std::string() : value;
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

Status read_config(const Json& json, const Json& generation, ModelSource& out) {
  if (!json.is_object()) return make_error(ErrorCode::bad_input, "config.json is not a JSON object");
  Fields fields(json, kConfigFile);
  const Lookup lookup = [&](const std::string& key) -> Json {
    const Json* found = find(json, key);
    return found ? *found : Json(nullptr);
  };
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

  const auto size = [&](std::string_view name, std::optional<std::uint32_t> fallback = {}) {
    const Value& value = recipe.size(name);
    const auto number = value.without_key(fallback, out.config.dim);
    const auto holds = [&](const Expected& e) { return said(json, e).empty(); };
    if (!value.one_where.empty() && std::ranges::all_of(value.one_where, holds)) return 1u;
    std::string key = value.keys.hugging_face;
    for (const std::string& other : value.also) key = find(json, key) ? key : other;
    return key.empty() ? *number : fields.u32(key, number);
  };
  ModelConfig& config = out.config;
  config.dim = size("dim");
  config.n_layers = size("n_layers");
  config.n_heads = size("n_heads");
  config.n_kv_heads = size("n_kv_heads", config.n_heads);
  config.head_dim = size("head_dim", config.n_heads == 0 ? 0 : config.dim / config.n_heads);
  config.ffn_dim = size("ffn_dim");
  config.vocab_size = size("vocab_size");
  config.max_seq_len = size("max_seq_len");
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
    if (said(json, expected).empty()) continue;
    return make_error(ErrorCode::unsupported, "config.json: \"{:.60}\" is not {:.40}, which the recipe {:.60} is for",
                      expected.key, expected.values.front(), recipe.name);
  }
  const bool has_names = !name_of(recipe, out.naming, Role::ffn_up_bias, 0).empty();
  if (mlp_bias && !has_names) return unsupported("a model with", "mlp_bias");
  QSF_TRY(check_packing(json));
  if (config.head_dim > kMaxDim) {
    return make_error(ErrorCode::bad_input, "config.json: \"head_dim\" is {}", config.head_dim);
  }
  QSF_LET(layers, resolve(recipe, out.naming, lookup, kConfigFile));
  out.layers = std::move(layers);
  QSF_LET(types, read_layer_types(recipe, out.naming, lookup, config.n_layers, kConfigFile));
  out.layers.exceptions.insert(out.layers.exceptions.begin(), types.begin(), types.end());
  QSF_TRY(read_attention(json, out));
  return read_tokens(generation, json, config);
}

}  // namespace qsf::convert
