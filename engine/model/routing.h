// The experts that the columns of a pass select, and the columns that select each expert.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"

namespace qsf {

/// A column that selects an expert, and the weight of the expert's output.
struct Pick {
  std::uint32_t column;
  float weight;
};

struct Routing {
  /// Takes memory for `chunk` columns that select `used` of `experts` each.
  Status init(Arena& arena, std::uint32_t chunk, std::uint32_t experts, std::uint32_t used);

  /// Fills begins and picks from the first n columns of choice and weight.
  void sort(std::uint32_t n, std::uint32_t n_experts, std::uint32_t used);
  std::span<const Pick> of(std::uint32_t expert) const {
    return std::span(picks).subspan(begins[expert], begins[expert + 1] - begins[expert]);
  }

  /// The state of a selected expert: awaited, in memory to stay, or computed. Experts that are not selected are done.
  enum class Stand : std::uint8_t { awaited, there, done };

  std::span<std::uint32_t> choice;  // [chunk, used]: the experts of each column, the best first, see choose_experts()
  std::span<float> weight;          // [chunk, used]
  std::span<std::uint32_t> begins;  // [experts + 1]: start of each expert's picks
  std::span<Pick> picks;            // [chunk * used]: by expert, then by ascending columns
  std::span<Stand> stands;          // [experts]

  // The current position of the computation.
  std::uint32_t expert = 0, matrix = 0, segment = 0;
  std::uint32_t left = 0;  // experts that are not done yet
  // Totals of all passes.
  std::uint64_t n_chosen = 0, n_found = 0;
};

/// Selects the experts with the largest keys[e] + bias[e], the largest first. Of equal ones, the lower index comes
/// first; a NaN is below all numbers. `bias` may be null. chosen.size() must be at most keys.size().
void choose_experts(std::span<const float> keys, const float* bias, std::span<std::uint32_t> chosen);

}  // namespace qsf
