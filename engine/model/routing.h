// Which experts the columns of a pass take, and the other way round.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"

namespace qsf {

/// A column that takes an expert, and how much of what it makes.
struct Pick {
  std::uint32_t column;
  float weight;
};

struct Routing {
  /// Room for `chunk` columns that take `used` of `experts` each.
  Status init(Arena& arena, std::uint32_t chunk, std::uint32_t experts, std::uint32_t used);

  /// Fills begins and picks from the first n columns of choice and weight.
  void sort(std::uint32_t n, std::uint32_t n_experts, std::uint32_t used);
  std::span<const Pick> of(std::uint32_t expert) const {
    return std::span(picks).subspan(begins[expert], begins[expert + 1] - begins[expert]);
  }

  /// What is known of an expert that columns take; of the others, done.
  enum class Stand : std::uint8_t { awaited, there, done };

  std::span<std::uint32_t> choice;  // [chunk, used]: experts of each column, the largest weight first
  std::span<float> weight;          // the same
  std::span<std::uint32_t> begins;  // [experts + 1]: where an expert's picks begin
  std::span<Pick> picks;            // [chunk * used]: by expert, columns ascending
  std::span<Stand> stands;          // [experts]

  // Where the computing is.
  std::uint32_t expert = 0, matrix = 0, segment = 0;
  std::uint32_t left = 0;  // experts that are not done
  // Of all passes.
  std::uint64_t n_chosen = 0, n_found = 0;
};

/// The experts that a column takes: those with the largest keys[e] + bias[e], the largest first. Of equal ones it is
/// that with the lower index; a NaN is below all. `bias` may be null; no more are chosen than there are keys.
void choose_experts(std::span<const float> keys, const float* bias, std::span<std::uint32_t> chosen);

}  // namespace qsf
