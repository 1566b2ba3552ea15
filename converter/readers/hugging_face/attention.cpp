#include "converter/readers/hugging_face/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "converter/model/attention_rules.h"
#include "converter/model/rope_scaling.h"
#include "converter/model/sizes.h"
#include "converter/recipes/settings.h"
#include "qsf/base/exact.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention", kChunked = "chunked_attention";

Error unsupported(const char* what, std::string_view value) {
  return make_error(ErrorCode::unsupported, "config.json: {} \"{:.60}\" is not supported", what, value);
}

struct Rope {
  double theta = 0;
  double partial = 1;  // the rotated part of a head
  RopeForm form;
  double stretch = 1;  // factor of theta
  bool operator==(const Rope&) const = default;

  std::uint32_t dims(std::uint32_t head_dim) const {
    return static_cast<std::uint32_t>(std::floor(head_dim * partial));
  }
};

Result<std::vector<double>> numbers(const Json& json, const char* key) {
  std::vector<double> out;
  const Json* list = find(json, key);
  const bool is_list = list && list->is_array() && list->size() <= kMaxDim;
  for (std::size_t i = 0; is_list && i < list->size(); ++i) {
    if ((*list)[i].is_number()) out.push_back((*list)[i].get<double>());
  }
  if (is_list && out.size() == list->size()) return out;
  return make_error(ErrorCode::bad_input, "config.json: \"{}\" is no list of numbers", key);
}

Result<RopeForm> read_form(const Json& json, const std::string& type, double theta, double partial, std::uint32_t dims,
                           const Json& config) {
  Fields fields(json, kConfigFile), outer(config, kConfigFile);
  const double longest = outer.number("max_position_embeddings", 0);
  const double original =
      fields.number("original_max_position_embeddings", outer.number("original_max_position_embeddings", longest));
  RopeForm form;
  if (type == "llama3") {
    const Llama3Scaling scaling{fields.number("factor"), fields.number("low_freq_factor"),
                                fields.number("high_freq_factor"), fields.number("original_max_position_embeddings")};
    QSF_TRY(fields.status());
    QSF_LET(divisors, llama3_divisors(scaling, static_cast<float>(theta), dims));
    form.divisors = std::move(divisors);
  } else if (type == "linear") {
    const double factor = fields.number("factor");
    QSF_TRY(fields.status());
    QSF_LET(divisors, linear_divisors(factor, dims));
    form.divisors = std::move(divisors);
  } else if (type == "yarn") {
    const double factor = fields.number("factor");
    const double m = fields.number("mscale", 0), m_all = fields.number("mscale_all_dim", 0);
    const bool both = m > 0 && m_all > 0;
    const double attention = both ? yarn_attention(factor, m) / yarn_attention(factor, m_all) : 0;
    const YarnScaling scaling{factor,
                              original,
                              fields.number("beta_fast", 32),
                              fields.number("beta_slow", 1),
                              fields.number("attention_factor", attention),
                              fields.flag("truncate", true)};
    QSF_TRY(fields.status());
    QSF_LET(made, yarn_form(scaling, theta, dims));
    form = std::move(made);
    form.scores = exact::pow(yarn_attention(factor, m_all), 2);
  } else if (type == "proportional") {
    return proportional_form(partial, fields.number("factor", 1), dims);
  } else if (type == "longrope") {
    QSF_LET(short_factors, numbers(json, "short_factor"));
    QSF_LET(long_factors, numbers(json, "long_factor"));
    const double factor = fields.number("factor", original > 0 ? longest / original : 0);
    const LongScaling scaling{short_factors, long_factors, factor, original, fields.number("attention_factor", 0)};
    QSF_TRY(fields.status());
    return long_form(scaling, dims);
  } else if (type != "default") {
    return unsupported("the RoPE type", type);
  }
  return form;
}

/// Reads one of the objects with RoPE's parameters. Missing ones are taken from `usual`.
Result<Rope> read_rope(const Json& json, const Rope& usual, std::uint32_t head_dim, const Json& config) {
  if (!json.is_object()) {
    return make_error(ErrorCode::bad_input, "config.json: the RoPE parameters are not an object");
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_object()) return unsupported("RoPE by kind of layer, as for", key);
  }
  Fields fields(json, kConfigFile);
  Rope rope{fields.number("rope_theta", usual.theta), fields.number("partial_rotary_factor", usual.partial), {}};
  std::string type = fields.text("rope_type", fields.text("type", "default"));
  const double alpha = fields.number("alpha", 0);
  if (!fields.status()) return fields.status().error();
  if (!(rope.partial > 0 && rope.partial <= 1)) {
    return make_error(ErrorCode::bad_input, "config.json: \"partial_rotary_factor\" is {}", rope.partial);
  }
  if (type == "dynamic") {
    // With `alpha` it is stretched once, for any length of text; otherwise only beyond the model's context.
    if (alpha > 0) rope.stretch = exact::pow(alpha, head_dim / (head_dim - 2.0));
    type = "default";
  }
  const double partial = rope.partial;
  if (type == "proportional") rope.partial = 1;  // its frequencies are those of whole heads
  QSF_LET(form, read_form(json, type, rope.theta, partial, rope.dims(head_dim), config));
  rope.form = std::move(form);
  return rope;
}

/// Reads base, rotated part and scaling from old or new keys, which must agree if both are present. Parameters may be
/// divided into those of layers without a window and with one.
Status read_position(const Json& json, LoadedModel& out, AttentionRules& rules) {
  ModelConfig& config = out.config;
  Fields fields(json, kConfigFile);
  Rope usual{out.recipe->default_theta, 1, {}};
  bool has_theta = false;
  for (const char* key : {"rope_theta", "rotary_emb_base", "global_rope_theta"}) {
    has_theta = has_theta || fields.has(key);
    usual.theta = fields.number(key, usual.theta);
  }
  for (const char* key : {"partial_rotary_factor", "rotary_pct", "rope_pct"}) {
    usual.partial = fields.number(key, usual.partial);
  }
  for (const char* key : {"rotary_dim", "attn_rotary_emb"}) {
    if (fields.has(key)) usual.partial = fields.number(key) / config.head_dim;
  }
  std::uint32_t width = config.head_dim;
  if (!out.recipe->rope_width.empty()) {
    const Lookup lookup = lookup_in(json);
    Counts counts(lookup, kConfigFile);
    width = counts.read(out.recipe->rope_width, count_form("head_dim"));
    QSF_TRY(counts.status());
  }
  rules.local_theta = fields.number("rope_local_base_freq", fields.number("local_rope_theta", out.recipe->local_theta));
  QSF_TRY(fields.status());
  std::optional<Rope> rope;
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* found = find(json, key);
    if (!found) continue;
    const Json* full = find(*found, kFull);
    if (const Json* local = find(*found, kSliding); local && full) {
      QSF_LET(stated, read_rope(*local, usual, width, json));
      if (stated.form != RopeForm{}) return unsupported("scaled RoPE in layers of", kSliding);
      rules.local_theta = stated.theta;
    }
    QSF_LET(stated, read_rope(full ? *full : *found, rope ? *rope : usual, width, json));
    if (rope && stated != *rope) {
      return make_error(ErrorCode::bad_input, "config.json: \"rope_scaling\" contradicts \"rope_parameters\"");
    }
    rope = std::move(stated);
  }
  if (!rope) rope = usual;
  if (!(rope->partial >= 0 && rope->partial <= 1)) {
    return make_error(ErrorCode::bad_input, "config.json: the rotated part of a head is {}, not from 0 to 1",
                      rope->partial);
  }
  if (has_theta && rope->theta != usual.theta) {
    return make_error(ErrorCode::bad_input, "config.json: \"rope_theta\" is {}, but the RoPE parameters say {}",
                      usual.theta, rope->theta);
  }
  if (rules.local_theta == rope->theta && rope->form == RopeForm{}) rules.local_theta = 0;
  config.rope_theta = static_cast<float>(rope->theta * rope->stretch);
  if (rope->partial != 1 || width != config.head_dim) config.rope_dims = rope->dims(width);
  config.rope_scale = rope->form.scale;
  config.rope_divisors = std::move(rope->form.divisors);
  config.score_factor = rope->form.scores;
  if (rope->form.long_from != 0) {
    out.layers.model.push_back(model_setting("long_rope_from", rope->form.long_from));
  }
  return {};
}

Status read_window(const Json& json, const Recipe& recipe, const ModelConfig& config, AttentionRules& rules) {
  if (recipe.window == WindowRule::none) return {};
  Fields fields(json, kConfigFile);
  const bool used = recipe.window != WindowRule::use_sliding_window || fields.flag("use_sliding_window", false);
  QSF_TRY(fields.status());
  if (!used) return {};
  const Lookup lookup = lookup_in(json);
  Counts counts(lookup, kConfigFile);
  const bool local = recipe.window == WindowRule::local_attention;
  const bool chunks = recipe.window == WindowRule::attention_chunk_size;
  const char* const key = local ? "local_attention" : chunks ? "attention_chunk_size" : "sliding_window";
  std::uint32_t window = counts.read(key, count_form("window"), recipe.default_window);
  std::uint32_t every = recipe.full_every;
  for (const char* pattern : {"_sliding_window_pattern", "sliding_window_pattern"}) {
    if (lookup(pattern).is_number()) every = counts.read(pattern, layers_form());
  }
  if (local) every = counts.read("global_attn_every_n_layers", layers_form(), every);
  const std::uint32_t first_sliding = counts.read("max_window_layers", layers_form(), 0);
  QSF_TRY(counts.status());
  if (!local && json.contains(key) && json[key].is_null()) window = 0;
  if (window == 0) return {};
  const Json* said = find(json, "use_bidirectional_attention");  // or a text, for other inputs than text
  const bool both_ways = local || (said && *said == true);
  rules.window = both_ways ? one_side(window) : window;
  rules.full.assign(config.n_layers, 0);
  if (const Json* types = find(json, "layer_types")) {
    if (!types->is_array() || types->size() != config.n_layers) {
      return make_error(ErrorCode::bad_input, "config.json: \"layer_types\" is not a list of {} layers",
                        config.n_layers);
    }
    for (std::uint32_t i = 0; i < config.n_layers; ++i) {
      const std::string* type = as_text((*types)[i]);
      if (!type || (*type != kFull && *type != (chunks ? kChunked : kSliding)))
        return unsupported("the layer type", type ? *type : "?");
      rules.full[i] = *type == kFull ? 1 : 0;
    }
  } else if (recipe.window == WindowRule::use_sliding_window) {
    for (std::uint32_t i = 0; i < std::min(first_sliding, config.n_layers); ++i) rules.full[i] = 1;
  } else if (local && every != 0) {
    rules.full = first_of_every(every, config.n_layers);
  } else if (chunks) {
    rules.full = rules.no_rope;
  } else if (every != 0) {
    rules.full = last_of_every(every, config.n_layers);
  }
  return {};
}

Status read_no_rope(const Json& json, const Recipe& recipe, const ModelConfig& config, AttentionRules& rules) {
  if (recipe.no_rope == NoRope::unless_rope) {
    const Json* kind = find(json, "position_embedding_type");
    const std::string* text = kind ? as_text(*kind) : nullptr;
    if (!text || *text != "rope") rules.no_rope = last_of_every(1, config.n_layers);
  }
  if (recipe.no_rope != NoRope::listed) return {};
  const Json* list = find(json, "no_rope_layers");
  const Lookup lookup = lookup_in(json);
  Counts counts(lookup, kConfigFile);
  const std::uint32_t every = counts.read("no_rope_layer_interval", layers_form(), recipe.no_rope_every);
  QSF_TRY(counts.status());
  if (!list || (list->is_array() && list->empty())) {
    if (every != 0) rules.no_rope = last_of_every(every, config.n_layers);
    return {};
  }
  if (!list->is_array() || list->size() != config.n_layers) {
    return make_error(ErrorCode::bad_input, "config.json: \"no_rope_layers\" is not a list of {} layers",
                      config.n_layers);
  }
  for (const Json& uses : *list) rules.no_rope.push_back(uses == 0 ? 1 : 0);
  return {};
}

}  // namespace

Status read_attention(const Json& json, LoadedModel& out) {
  AttentionRules rules;
  QSF_TRY(read_position(json, out, rules));
  QSF_TRY(read_no_rope(json, *out.recipe, out.config, rules));
  QSF_TRY(read_window(json, *out.recipe, out.config, rules));
  const Recipe& recipe = *out.recipe;
  const Lookup lookup = lookup_in(json);
  Counts counts(lookup, kConfigFile);
  if (!recipe.shared_kv.hugging_face.empty()) {
    rules.n_shared = counts.read(recipe.shared_kv.hugging_face, layers_form(), 0);
  }
  QSF_TRY(counts.status());
  Fields fields(json, kConfigFile);
  if (!recipe.wide_shared.empty()) rules.wide_shared = fields.flag(recipe.wide_shared, false);
  QSF_TRY(fields.status());
  return apply_rules(rules, out);
}

}  // namespace qsf::convert
