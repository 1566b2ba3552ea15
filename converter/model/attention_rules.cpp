#include "converter/model/attention_rules.h"

#include <algorithm>
#include <cmath>

#include "converter/recipes/settings.h"
#include "qsf/base/try.h"

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

/// Gives each of the last n_shared layers the keys and values of the last earlier layer with, or without, a window.
Status share_keys(const AttentionRules& rules, const ModelConfig& config, std::vector<LayerException>& out) {
  if (rules.n_shared == 0) return {};
  if (rules.n_shared >= config.n_layers) {
    return make_error(ErrorCode::bad_input, "{} of {} layers share keys and values: none has them", rules.n_shared,
                      config.n_layers);
  }
  const std::uint32_t own = config.n_layers - rules.n_shared;
  const auto full = [&](std::uint32_t layer) { return layer < rules.full.size() && rules.full[layer] != 0; };
  for (std::uint32_t layer = own; layer < config.n_layers; ++layer) {
    std::uint32_t from = own;
    while (from > 0 && full(from - 1) != full(layer)) --from;
    if (from == 0) {
      return make_error(ErrorCode::bad_input, "layer {} shares keys and values, but no layer of its kind has them",
                        layer);
    }
    LayerException exception{.layers = {layer}, .settings = {layer_setting("kv_from", from)}};
    if (rules.wide_shared) exception.settings.push_back(layer_setting("ffn_dim", 2.0 * config.ffn_dim));
    out.push_back(std::move(exception));
  }
  return {};
}

}  // namespace

std::vector<std::uint8_t> first_of_every(std::uint32_t every, std::uint32_t n_layers) {
  std::vector<std::uint8_t> out(n_layers);
  for (std::uint32_t i = 0; i < n_layers; ++i) out[i] = i % every == 0 ? 1 : 0;
  return out;
}

std::vector<std::uint8_t> last_of_every(std::uint32_t every, std::uint32_t n_layers) {
  std::vector<std::uint8_t> out(n_layers);
  for (std::uint32_t i = 0; i < n_layers; ++i) out[i] = (i + 1) % every == 0 ? 1 : 0;
  return out;
}

Status apply_rules(const AttentionRules& rules, LoadedModel& model) {
  const auto is = [](std::uint8_t yes) { return yes != 0; };
  const bool all_full = !rules.full.empty() && std::ranges::all_of(rules.full, is);
  model.config.window = all_full ? 0 : rules.window;
  std::vector<LayerException> exceptions;
  if (model.config.window != 0) {
    if (std::ranges::any_of(rules.full, is)) {
      exceptions.push_back(exception_for(rules.full, true, {layer_setting("window", 0)}));
    }
    if (!model.layers.windowed.empty()) {
      std::vector<std::uint8_t> full = rules.full;
      full.resize(model.config.n_layers);
      exceptions.push_back(exception_for(full, false, model.layers.windowed));
    }
    if (rules.local_theta != 0) {
      std::vector<std::uint8_t> full = rules.full;
      full.resize(model.config.n_layers);
      exceptions.push_back(exception_for(full, false,
                                         {layer_setting("rope_theta", rules.local_theta),
                                          layer_setting("rope_scaled", 0), layer_setting("rope_scale", 1)}));
    }
  }
  if (model.recipe->yarn_scores && model.config.score_factor != 1) {
    LayerKind every;
    apply_settings(model.layers.every, every);
    const double width = every.latent_head_dim != 0 ? every.latent_head_dim : model.config.head_dim;
    model.layers.every.push_back(layer_setting("attention_scale", model.config.score_factor / std::sqrt(width)));
  }
  const bool by_window = model.recipe->no_rope == NoRope::full_layers && rules.window != 0;
  if (const auto& no_rope = by_window ? rules.full : rules.no_rope; std::ranges::any_of(no_rope, is)) {
    std::vector<Setting> settings = model.layers.unrotated;
    settings.push_back(layer_setting("rope_dims", 0));
    exceptions.push_back(exception_for(no_rope, true, std::move(settings)));
  }
  QSF_TRY(share_keys(rules, model.config, exceptions));
  model.layers.exceptions.insert(model.layers.exceptions.begin(), exceptions.begin(), exceptions.end());
  return {};
}

}  // namespace qsf::convert
