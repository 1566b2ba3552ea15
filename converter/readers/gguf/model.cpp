// A GGUF file as a model: its architecture's keys.
#include <algorithm>
#include <cmath>

#include "converter/model/attention_rules.h"
#include "converter/model/layer_types.h"
#include "converter/model/rope_scaling.h"
#include "converter/model/sizes.h"
#include "converter/readers/chat_template.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/gguf/keys.h"
#include "converter/readers/hugging_face/sentence_transformers.h"
#include "converter/readers/hugging_face/text_part.h"
#include "converter/readers/reranker.h"
#include "converter/recipes/settings.h"
#include "converter/tokenizers/tokenizers.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

using namespace gguf_key;

std::uint32_t rope_dims(const ModelConfig& config) { return config.rope_dims.value_or(config.head_dim); }

/// Returns a tensor of frequencies, f32 [rope_dims / 2]; empty if there is none.
Result<std::vector<float>> read_frequencies(const Gguf& gguf, std::string_view name, const ModelConfig& config) {
  std::vector<float> divisors;
  for (const LoadedTensor& tensor : gguf.tensors) {
    if (tensor.name != name) continue;
    if (tensor.format != FormatId::f32 || tensor.shape.size() != 1 || tensor.shape[0] != rope_dims(config) / 2) {
      return make_error(ErrorCode::bad_input,
                        "GGUF: {} is not an F32 vector of {} values, half of the dimensions that RoPE rotates", name,
                        rope_dims(config) / 2);
    }
    divisors.resize(tensor.shape[0]);
    QSF_TRY(tensor.rows_of(0, 1, std::as_writable_bytes(std::span(divisors))));
    for (float& divisor : divisors) {
      if (divisor >= kNotTurned) divisor = kNotTurned;
      if (!(divisor > 0) || !std::isfinite(divisor)) {
        return make_error(ErrorCode::bad_input, "GGUF: {} holds {}", name, divisor);
      }
    }
  }
  return divisors;
}

/// Reads rope_freqs.weight, the divisors of the inverse frequencies.
Status read_rope_frequencies(const Gguf& gguf, ModelConfig& config) {
  QSF_LET(divisors, read_frequencies(gguf, kRopeFrequencies, config));
  if (divisors.empty()) return {};
  for (std::size_t i = 0; i < config.rope_divisors.size(); ++i)
    if (divisors[i] != kNotTurned) divisors[i] *= config.rope_divisors[i];
  config.rope_divisors = std::move(divisors);
  return {};
}

/// Reads rope_factors_short.weight and rope_factors_long.weight.
Status read_long_rope(const Gguf& gguf, Keys& keys, LoadedModel& out) {
  ModelConfig& config = out.config;
  QSF_LET(short_floats, read_frequencies(gguf, kShortFactors, config));
  QSF_LET(long_floats, read_frequencies(gguf, kLongFactors, config));
  if (short_floats.empty() && long_floats.empty()) {
    if (keys.text(kScalingType, "") != "longrope") return {};
    return make_error(ErrorCode::bad_input, "GGUF: the RoPE scaling is longrope, but its factors are missing");
  }
  const std::vector<double> short_factors(short_floats.begin(), short_floats.end());
  const std::vector<double> long_factors(long_floats.begin(), long_floats.end());
  const double original = keys.number(kOriginalContext, config.max_seq_len);
  const double attention = keys.number(kRotatedFactor, 0);
  QSF_TRY(keys.status());
  QSF_LET(form, long_form({short_factors, long_factors, config.max_seq_len / original, original, attention},
                          rope_dims(config)));
  config.rope_divisors = std::move(form.divisors);
  config.rope_scale = form.scale;
  out.layers.model.push_back(model_setting("long_rope_from", form.long_from));
  return {};
}

/// Reads RoPE's scaling. "rope.scale_linear" is the old name of "rope.scaling.factor". A factor without a type is
/// linear.
Status read_scaling(const Gguf& gguf, Keys& keys, LoadedModel& out) {
  ModelConfig& config = out.config;
  constexpr std::string_view kType = kScalingType, kFactor = kScalingFactor, kOld = kOldScalingFactor;
  const double old = keys.number(kOld, 0), factor = keys.number(kFactor, old);
  const bool scales = factor != 0 && factor != 1;
  const std::string_view type = keys.text(kType, scales ? "linear" : "none");
  QSF_TRY(keys.status());
  if (keys.has(kOld) && old != factor) {
    return make_error(ErrorCode::bad_input, "GGUF: rope.scale_linear is {}, but rope.scaling.factor {}", old, factor);
  }
  if (type == "none" && scales) {
    return make_error(ErrorCode::bad_input, "GGUF: there is a RoPE scaling factor of {}, but its type is none", factor);
  }
  if (type == "linear") {
    QSF_LET(divisors, linear_divisors(factor == 0 ? 1 : factor, rope_dims(config)));
    config.rope_divisors = std::move(divisors);
  } else if (type == "yarn") {
    const double m = keys.number("rope.scaling.yarn_log_multiplier", 0);
    const bool scores = m > 0 && out.recipe->yarn_scores;  // m is then a tenth, and RoPE itself has no factor
    if (scores) config.score_factor = exact::pow(yarn_attention(factor, 10 * m), 2);
    const double stated = scores ? 1 : m > 0 ? yarn_attention(factor, 1) / yarn_attention(factor, m) : 0;
    const YarnScaling scaling{factor,
                              keys.number(kOriginalContext, config.max_seq_len),
                              keys.number("rope.scaling.yarn_beta_fast", 32),
                              keys.number("rope.scaling.yarn_beta_slow", 1),
                              stated,
                              keys.flag("rope.scaling.yarn_truncate", true)};
    const double attention = keys.number(kRotatedFactor, 1);
    QSF_TRY(keys.status());
    QSF_LET(form, yarn_form(scaling, config.rope_theta, rope_dims(config)));
    config.rope_divisors = std::move(form.divisors);
    config.rope_scale = static_cast<float>(form.scale * attention);
  } else if (type != "none" && type != "longrope") {
    return make_error(ErrorCode::unsupported, "GGUF: the RoPE scaling \"{:.40}\" is not supported", type);
  }
  QSF_TRY(read_long_rope(gguf, keys, out));
  return read_rope_frequencies(gguf, config);
}

/// Reads the layers without a window or without positions from the keys, or else from the recipe.
Status read_layers(const Gguf& gguf, const std::string& prefix, const Recipe& recipe, std::uint32_t n_layers,
                   AttentionRules& rules) {
  const std::string key = prefix + std::string(kWindowPattern);
  std::uint32_t every = recipe.full_every;
  if (gguf.values.contains(key)) {
    const auto list = gguf.numbers(key);
    const auto number = gguf.number(key);
    if (number) {
      QSF_LET(stated, read_value(*number, layers_form(), "GGUF", key));
      every = static_cast<std::uint32_t>(stated);
    }
    if (list && list->size() >= n_layers) {
      for (std::uint32_t i = 0; i < n_layers; ++i) rules.full.push_back((*list)[i] == 0 ? 1 : 0);
    } else if (!number) {
      return make_error(ErrorCode::bad_input, "GGUF: the key {:.80} is neither a number nor a list of {} layers", key,
                        n_layers);
    }
  }
  if (rules.full.empty() && every != 0) {
    const bool first = recipe.window == WindowRule::local_attention;
    rules.full = first ? first_of_every(every, n_layers) : last_of_every(every, n_layers);
  }
  if (recipe.no_rope == NoRope::unless_rope && !gguf.flag(prefix + "rope.scaling.finetuned").value_or(true)) {
    rules.no_rope.assign(n_layers, 1);
  }
  if (recipe.no_rope == NoRope::listed && recipe.no_rope_every != 0) {
    rules.no_rope = last_of_every(recipe.no_rope_every, n_layers);
  }
  return {};
}

/// Makes layers that have neither a window nor a tensor of values take their values from their keys.
void take_values_from_keys(const Gguf& gguf, const Recipe& recipe, const AttentionRules& rules, LayerRules& layers) {
  LayerException exception{.settings = {layer_setting("v_from_k", 1)}};
  for (std::uint32_t layer = 0; layer < rules.full.size(); ++layer) {
    if (rules.full[layer] == 0) continue;
    const std::string name = name_of(recipe, Naming::gguf, Role::attn_v, layer);
    if (std::ranges::find(gguf.tensors, name, &LoadedTensor::name) == gguf.tensors.end()) {
      exception.layers.push_back(layer);
    }
  }
  if (!exception.layers.empty()) layers.exceptions.push_back(std::move(exception));
}

Status read_config(const Gguf& gguf, LoadedModel& out) {
  const std::optional<std::string_view> architecture = gguf.text(kArchitecture);
  if (!architecture) return make_error(ErrorCode::bad_input, "GGUF: the key general.architecture is missing");
  const std::string prefix = std::string(*architecture) + ".";
  const auto value = [&](const std::string& key) -> Json {
    const std::string whole = prefix + key;
    if (const auto number = gguf.number(whole)) return *number;
    if (const auto flag = gguf.flag(whole)) return *flag;
    if (const auto numbers = gguf.numbers(whole)) return Json(*numbers);
    const auto text = gguf.text(whole);
    return text ? Json(std::string(*text)) : Json(nullptr);
  };
  const Lookup lookup{.value = value, .prefix = prefix};
  if (!out.recipe) {
    QSF_LET(known, recipe_for(*architecture));
    out.recipe = std::move(known);
    QSF_LET(chosen, recipe_with_experts(std::move(out.recipe), out.naming, lookup));
    out.recipe = std::move(chosen);
  }
  const Recipe& recipe = *out.recipe;
  out.interleaved_rope = recipe.interleaved(out.naming);

  Keys keys(gguf, prefix);
  std::vector<LayerException> by_layer;
  ModelConfig& config = out.config;
  config.name = gguf.text(kName).value_or("");
  QSF_TRY(read_sizes(recipe, out.naming, lookup, "GGUF", config, by_layer));
  Counts counts(lookup, "GGUF");
  const auto count = [&](std::string_view key, std::string_view form, std::uint32_t fallback) {
    return counts.read(std::string(key), count_form(form), fallback);
  };
  const std::uint32_t value_dim = count(kValueLength, "head_dim", config.head_dim);
  const std::uint32_t rope_dim = count(kRopeDims, "rope_dims", config.head_dim);
  const std::uint32_t n_experts = count("expert_count", "n_experts", 0);
  AttentionRules rules;
  rules.window = count(kWindow, "window", recipe.gguf_window);
  config.n_guessing = counts.read(std::string(kGuessingLayers), layers_form(), 0);
  if (!recipe.shared_kv.gguf.empty()) rules.n_shared = counts.read(recipe.shared_kv.gguf, layers_form(), 0);
  QSF_TRY(counts.status());
  if (recipe.window == WindowRule::attention_chunk_size && rules.window == 0) {
    return make_error(ErrorCode::unsupported, "GGUF: {} is 0: attention without chunks is not supported", kWindow);
  }
  if (config.n_guessing >= config.n_layers) {
    return make_error(ErrorCode::bad_input, "GGUF: {} of {} layers guess further tokens: none is left",
                      config.n_guessing, config.n_layers);
  }
  config.n_layers -= config.n_guessing;  // which the file counts among its layers
  rules.local_theta = keys.number(kLocalRopeBase, recipe.local_theta);
  if (!recipe.sets("norm_epsilon")) {
    config.norm_epsilon = static_cast<float>(keys.number(kNormEpsilon));
  }
  config.rope_theta = static_cast<float>(keys.number(kRopeBase, 10000));
  QSF_TRY(keys.status());
  if (rope_dim != config.head_dim) config.rope_dims = rope_dim;
  if (n_experts != 0 && !recipe.has_experts()) {
    return make_error(ErrorCode::unsupported, "GGUF: a mixture of {} experts, which the recipe {:.60} does not have",
                      n_experts, recipe.name);
  }
  QSF_LET(layers, resolve(recipe, out.naming, lookup, "GGUF"));
  out.layers = std::move(layers);
  LayerKind every;
  apply_settings(out.layers.every, every);
  const std::uint32_t value_of_key = every.mixer == Mixer::latent ? every.latent_dim : config.head_dim;
  if (value_dim != value_of_key && !lookup(std::string(kValueLength)).is_null()) {
    return make_error(ErrorCode::unsupported, "GGUF: values of {} dimensions are not supported: keys have {}",
                      value_dim, value_of_key);
  }
  QSF_LET(types, read_layer_types(recipe, out.naming, lookup, config.n_layers, "GGUF"));
  out.layers.exceptions.insert(out.layers.exceptions.begin(), types.begin(), types.end());
  QSF_LET(lists, read_layer_lists(recipe, out.naming, lookup, config.n_layers, "GGUF"));
  out.layers.exceptions.insert(out.layers.exceptions.begin(), lists.begin(), lists.end());
  out.layers.exceptions.insert(out.layers.exceptions.begin(), by_layer.begin(), by_layer.end());
  Keys tokens(gguf, std::string(kTokenizer));
  config.bos = tokens.token(kBos);
  config.eos = tokens.token(kEos);
  config.pad = tokens.token(kPad);
  if (config.eos != kNoToken) config.all_eos = {config.eos};
  for (const std::string_view key : kOtherEnds) {
    const std::uint32_t other = tokens.token(key);
    if (other != kNoToken && std::ranges::find(config.all_eos, other) == config.all_eos.end()) {
      config.all_eos.push_back(other);
    }
  }
  QSF_TRY(tokens.status());
  if (every.bidirectional != 0 && rules.window != 0) rules.window = one_side(rules.window);
  QSF_TRY(read_layers(gguf, prefix, recipe, config.n_layers, rules));
  QSF_TRY(read_scaling(gguf, keys, out));
  if (recipe.sets("v_from_k")) take_values_from_keys(gguf, recipe, rules, out.layers);
  if (recipe.gguf_scale_layers == config.n_layers) {
    const double width = static_cast<double>(config.dim) / config.n_heads;
    out.layers.every.push_back(layer_setting("attention_scale", 1 / std::sqrt(width)));
  }
  return apply_rules(rules, out);
}

/// Takes the vocabulary's size from the embedding, because the key vocab_size is often missing.
Status read_vocab_size(const Gguf& gguf, const Recipe& recipe, ModelConfig& config) {
  const std::string embedding = name_of(recipe, Naming::gguf, Role::token_embd, 0);
  for (const LoadedTensor& tensor : gguf.tensors) {
    if (tensor.name != embedding) continue;
    const auto shape = matrix_shape(tensor.shape);
    if (!shape) break;
    config.vocab_size = (*shape)[0];
    return {};
  }
  return make_error(ErrorCode::bad_input, "GGUF: there is no tensor {:.100} with a vocabulary", embedding);
}

}  // namespace

/// Reads the keys that llama.cpp's converter writes for sentence-transformers' modules. Normalization has no key, but
/// llama.cpp's programs normalize, as do nearly all models with these keys.
Status read_embedding(const Gguf& gguf, LoadedModel& out) {
  const std::string prefix = std::string(gguf.text(kArchitecture).value_or("")) + ".";
  Keys keys(gguf, prefix);
  if (!keys.has("pooling_type")) return {};
  const std::uint32_t type = keys.u32("pooling_type");
  QSF_TRY(keys.status());
  if (type >= kPoolingNames.size()) {
    return make_error(ErrorCode::unsupported, "GGUF: the pooling {} ({}pooling_type) is not supported", type, prefix);
  }
  const auto pooling = static_cast<Pooling>(type);
  if (pooling == Pooling::none) {
    out.layers.model.push_back(model_setting("pooling", type));
    return {};
  }
  std::vector<LoadedTensor> dense;
  for (const std::string_view name : {"dense_2.weight", "dense_3.weight"}) {
    const auto found = std::ranges::find(out.tensors, name, &LoadedTensor::name);
    if (found == out.tensors.end()) continue;
    dense.push_back(std::move(*found));
    out.tensors.erase(found);
  }
  return take_embedding(out, pooling, true, std::move(dense));
}

bool is_gguf_file(const ModelLocation& place) { return place.file && is_gguf(place.head); }

Result<LoadedModel> open_gguf(const ModelLocation& place, bool with_tokenizer) {
  QSF_LET(gguf, read_gguf(*place.file, place.ternary));
  QSF_TRY(join_gguf_parts(place, gguf));
  QSF_TRY(add_gguf_lists(gguf));
  LoadedModel out;
  out.kind = "GGUF";
  out.naming = Naming::gguf;
  out.carry_formats = true;
  out.recipe = place.recipe;
  QSF_TRY(read_config(gguf, out));
  QSF_TRY(fold_gguf_scales(gguf.tensors, *out.recipe));
  QSF_TRY(read_vocab_size(gguf, *out.recipe, out.config));
  if (out.config.name.empty()) out.config.name = place.name;
  out.tensors = std::move(gguf.tensors);
  take_guess_layer(out);
  QSF_LET(reranker, read_reranker(gguf, out));
  if (reranker == Reranker::none) QSF_TRY(read_embedding(gguf, out));
  if (with_tokenizer) {
    Result<std::optional<TokenizerSource>> tokenizer = read_gguf_tokenizer(gguf);
    if (!tokenizer) return tokenizer.error();
    out.tokenizer = std::move(*tokenizer);
    if (!out.tokenizer) out.warnings.push_back("the GGUF has no tokenizer: the file will only take token ids");
    QSF_TRY(fit_tokenizer(out));
  }
  read_chat_template(gguf, out);
  QSF_TRY(finish_reranker(reranker, place.folder, out));
  return out;
}

}  // namespace qsf::convert
