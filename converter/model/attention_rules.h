// Differences between a model's layers of attention: windows and positions.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

struct AttentionRules {
  std::uint32_t window = 0;           // 0: no window
  std::vector<std::uint8_t> full;     // [n_layers] layers without the window; empty: all layers have it
  std::vector<std::uint8_t> no_rope;  // [n_layers] layers without positions, if the recipe does not tie them to windows
  double local_theta = 0;             // unscaled RoPE base of layers with the window; 0: the same base in all layers
  std::uint32_t n_shared = 0;         // last layers that use an earlier layer's keys and values
  bool wide_shared = false;           // the networks of these layers are twice as wide
};

/// Returns the window to one side, own token included, of layers that see both sides. `window` is the whole, as sources
/// give it.
constexpr std::uint32_t one_side(std::uint32_t window) { return window / 2 + 1; }

/// Returns the first, or the last, layer of each group of `every`, as flags [n_layers].
std::vector<std::uint8_t> first_of_every(std::uint32_t every, std::uint32_t n_layers);
std::vector<std::uint8_t> last_of_every(std::uint32_t every, std::uint32_t n_layers);

/// Writes the rules to the model's configuration. Their exceptions come before the recipe's own.
Status apply_rules(const AttentionRules& rules, LoadedModel& model);

}  // namespace qsf::convert
