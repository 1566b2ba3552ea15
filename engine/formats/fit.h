// Fitting of lines to weights, four at a time. Each lane of a vector is another line, so that every sum is in the order
// of the weights on every machine.
#pragma once

#include <cstdint>
#include <span>

#include "formats/levels.h"

namespace qsf {

inline constexpr std::uint32_t kFitLanes = 4;
typedef float FitLanes __attribute__((vector_size(kFitLanes * sizeof(float))));

/// Returns the levels nearest to v.
template <bool kWhole>
inline FitLanes nearest_levels(const LevelTable& table, FitLanes v) {
  constexpr float kRound = 0x1.8p23f;  // adding and subtracting it rounds to whole numbers
  const FitLanes low = FitLanes{} + table.low, high = FitLanes{} + table.high;
  if constexpr (kWhole) {
    v = v > low ? v : low;
    v = v < high ? v : high;
    return (v + kRound) - kRound;
  }
  FitLanes at = low;
  for (std::uint32_t k = 0; k + 1 < table.n; ++k) at += v > table.above[k] ? FitLanes{} + table.step[k] : FitLanes{};
  return at;
}

/// Weights are scale * level + minimum.
struct Line {
  float scale = 0, minimum = 0;
};

/// The lines that a format allows.
struct LineRules {
  const LevelTable* table;
  bool minimum;   // the format has one
  bool positive;  // scales are at least 0, minima at most 0
};

/// Returns the line with the least sum of cost[i] * error[i]^2, if each weight takes its nearest level.
Line best_line(const LineRules& rules, std::span<const float> weights, std::span<const float> cost);

/// Four lines and the costs of their errors.
struct Lines {
  FitLanes scale, minimum;
};
FitLanes errors_of(const LevelTable& table, std::span<const float> weights, std::span<const float> cost,
                   const Lines& lines);

}  // namespace qsf
