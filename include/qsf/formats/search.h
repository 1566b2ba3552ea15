// Quantizing with a measure: scales and codes that are sought for what their errors cost, not rounded one by one.
#pragma once

#include <cstddef>
#include <span>

#include "qsf/formats/format.h"

namespace qsf {

/// What the errors e of a block's weights cost: the sum of cost[i] * (e[i] + sum over j > i of carry[i][j] * e[j])^2.
/// With H the second moments of the columns, as H = U^T D U with U unit upper triangular once columns are taken from
/// the last: that is e H e^T (the LDLQ of QuIP, Chee et al. 2023; GPTQ, Frantar et al. 2022, in other words).
struct BlockCost {
  std::span<const float> cost;  // [block], at least 0; empty: ones
  const float* carry =
      nullptr;  // [block] rows of `stride` floats, of which those behind the diagonal are read; or none
  std::size_t stride = 0;
};

/// As quantize_block, with scales, minima and codes sought so that the errors cost least; gives what they cost.
/// weights.size() == f.block; formats that are quantized only.
double search_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out);

/// The same, or what quantize_block gives where that costs less.
double best_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out);

}  // namespace qsf
