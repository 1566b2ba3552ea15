// config.json: sizes, RoPE, window, token ids.
#include <algorithm>
#include <array>

#include "converter/hugging_face.h"
#include "converter/rope_scaling.h"
#include "converter/settings.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kConfigFile = "config.json";

Error unsupported(const char* what, std::string_view value) {
  return make_error(ErrorCode::unsupported, "config.json: {} \"{:.60}\" is not supported", what, value);
}

struct Rope {
  double theta = 0;
  std::vector<float> divisors;  // empty: ones
  bool operator==(const Rope&) const = default;
};

/// One of the objects that say how positions are turned; `theta` where it has none of its own.
Result<Rope> read_rope(const Json& json, double theta, std::uint32_t head_dim) {
  if (!json.is_object()) {
    return make_error(ErrorCode::bad_input, "config.json: the RoPE parameters are not an object");
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) return unsupported("RoPE by kind of layer, as for", key);
  }
  Fields fields(json, kConfigFile);
  Rope rope{fields.number("rope_theta", theta), {}};
  const double partial = fields.number("partial_rotary_factor", 1.0);
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (!fields.status()) return fields.status().error();
  if (partial != 1.0) return unsupported("RoPE over a part of the head,", "partial_rotary_factor");
  if (type == "llama3") {
    const Llama3Scaling scaling{fields.number("factor"), fields.number("low_freq_factor"),
                                fields.number("high_freq_factor"), fields.number("original_max_position_embeddings")};
    QSF_TRY(fields.status());
    QSF_LET(divisors, llama3_divisors(scaling, static_cast<float>(rope.theta), head_dim));
    rope.divisors = std::move(divisors);
  } else if (type == "linear") {
    const double factor = fields.number("factor");
    QSF_TRY(fields.status());
    QSF_LET(divisors, linear_divisors(factor, head_dim));
    rope.divisors = std::move(divisors);
  } else if (type != "default") {
    return unsupported("the RoPE type", type);
  }
  return rope;
}

/// theta and scaling, old keys or new. Where there are both they must say the same.
Status read_position(const Json& json, ModelConfig& config) {
  constexpr double kDefaultTheta = 10000;
  Fields fields(json, kConfigFile);
  const double theta = fields.number("rope_theta", kDefaultTheta);
  const double partial = fields.number("partial_rotary_factor", 1.0);
  QSF_TRY(fields.status());
  if (partial != 1.0) return unsupported("RoPE over a part of the head,", "partial_rotary_factor");
  std::optional<Rope> rope;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* found = find(json, key);
    if (!found) continue;
    QSF_LET(stated, read_rope(*found, rope ? rope->theta : theta, config.head_dim));
    if (rope && stated != *rope) {
      return make_error(ErrorCode::bad_input, "config.json: \"rope_scaling\" says otherwise than \"rope_parameters\"");
    }
    rope = std::move(stated);
  }
  if (!rope) rope = Rope{theta, {}};
  if (fields.has("rope_theta") && rope->theta != theta) {
    return make_error(ErrorCode::bad_input, "config.json: \"rope_theta\" is {}, but the RoPE parameters say {}", theta,
                      rope->theta);
  }
  config.rope_theta = static_cast<float>(rope->theta);
  config.rope_divisors = std::move(rope->divisors);
  return {};
}

Status read_window(const Json& json, const Recipe& recipe, ModelConfig& config) {
  if (recipe.window == WindowRule::none) return {};
  Fields fields(json, kConfigFile);
  const bool used = recipe.window == WindowRule::sliding_window || fields.flag("use_sliding_window", false);
  std::uint32_t window = fields.u32("sliding_window", recipe.default_window);
  const std::uint32_t first_sliding = fields.u32("max_window_layers", 0);
  if (!fields.status()) return fields.status();
  if (json.contains("sliding_window") && json["sliding_window"].is_null()) window = 0;
  if (!used || window == 0) return {};

  std::uint32_t n_sliding = config.n_layers;
  if (const Json* types = find(json, "layer_types")) {
    if (!types->is_array()) return make_error(ErrorCode::bad_input, "config.json: \"layer_types\" is not a list");
    n_sliding = static_cast<std::uint32_t>(std::count(types->begin(), types->end(), Json("sliding_attention")));
  } else if (recipe.window == WindowRule::use_sliding_window) {
    n_sliding -= std::min(first_sliding, config.n_layers);
  }
  if (n_sliding != 0 && n_sliding != config.n_layers) {
    return make_error(ErrorCode::unsupported,
                      "config.json: a sliding window in {} of {} layers is not supported: it must be all or none",
                      n_sliding, config.n_layers);
  }
  config.window = n_sliding == 0 ? 0 : window;
  return {};
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
  if (!out.recipe) {
    const std::string type = fields.text("model_type", "");
    if (!fields.status()) return fields.status();
    if (type.empty()) return make_error(ErrorCode::bad_input, "config.json: \"model_type\" is missing");
    QSF_LET(known, recipe_for(type));
    out.recipe = std::move(known);
  }
  const Recipe& recipe = *out.recipe;
  out.interleaved_rope = recipe.interleaved(out.naming);

  const auto size = [&](std::string_view name, std::optional<std::uint32_t> fallback = {}) {
    const Value& value = recipe.size(name);
    const auto number = value.number ? std::optional(static_cast<std::uint32_t>(*value.number)) : fallback;
    return value.keys.hugging_face.empty() ? *number : fields.u32(value.keys.hugging_face, number);
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
  const std::string activation = fields.text("hidden_act", "silu");
  const bool mlp_bias = fields.flag("mlp_bias", false);
  if (!fields.status()) return fields.status();
  if (activation != "silu" && !recipe.sets("activation")) return unsupported("the activation", activation);
  const bool has_names = !name_of(recipe, out.naming, Role::ffn_up_bias, 0).empty();
  if (mlp_bias && !has_names) return unsupported("a model with", "mlp_bias");
  if (const Json* quantization = find(json, "quantization_config")) {
    return unsupported("a model quantized with", Fields(*quantization, kConfigFile).text("quant_method", "?"));
  }
  if (config.head_dim > kMaxDim) {
    return make_error(ErrorCode::bad_input, "config.json: \"head_dim\" is {}", config.head_dim);
  }
  QSF_TRY(read_position(json, config));
  QSF_TRY(read_window(json, recipe, config));
  const Lookup lookup = [&](const std::string& key) -> Json {
    const Json* found = find(json, key);
    return found ? *found : Json(nullptr);
  };
  QSF_LET(layers, resolve(recipe, out.naming, lookup, kConfigFile));
  out.layers = std::move(layers);
  return read_tokens(generation, json, config);
}

}  // namespace qsf::convert
