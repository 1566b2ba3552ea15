// What differs between a model's layers of attention, and is said per layer: windows, and positions.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/model_source.h"

namespace qsf::convert {

struct AttentionRules {
  std::uint32_t window = 0;           // 0: none
  std::vector<std::uint8_t> full;     // [n_layers]: the window does not hold; empty: it holds everywhere
  std::vector<std::uint8_t> no_rope;  // [n_layers]: without positions, where the recipe does not tie them to windows
  double local_theta = 0;             // RoPE's base, unscaled, where the window holds; 0: as everywhere
  std::uint32_t n_shared = 0;         // the last layers, which see keys and values of the last of their kind before
  bool wide_shared = false;           // whose networks are twice as wide
};

/// The window of layers that see to both sides: the token itself and one side. Sources tell the whole.
constexpr std::uint32_t one_side(std::uint32_t window) { return window / 2 + 1; }

/// The layers of a pattern: the first, or the last, of `every`.
std::vector<std::uint8_t> first_of_every(std::uint32_t every, std::uint32_t n_layers);
std::vector<std::uint8_t> last_of_every(std::uint32_t every, std::uint32_t n_layers);

/// Puts the rules into the model's configuration, exceptions in front of the recipe's own.
Status apply_rules(const AttentionRules& rules, ModelSource& model);

}  // namespace qsf::convert
