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

/// A block of a row.
struct SearchedBlock {
  std::span<const float> weights;  // [block]
  std::byte* out;
  std::span<float> away{};  // [block] or none: becomes what the cost is of, errors with what is carried to them
  double cost = 0;          // of the errors
};
/// As quantize_block, with scales, minima and codes sought so that the errors cost least. Of several rows, whose errors
/// cost the same: what the cost alone says is found out once. Formats that are quantized only.
void search_blocks(const Format& f, const BlockCost& cost, std::span<SearchedBlock> blocks);

/// Of one row, or what quantize_block gives where that costs less; gives what the errors cost.
double best_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out);

/// Second moments H of the columns that a block's weights are multiplied with: [block] rows of `stride` floats.
struct BlockMoments {
  const float* h;
  std::size_t stride;
};

/// A block of a row.
struct ImprovedBlock {
  std::span<float> pull;  // [block]: H e of its columns, with e the errors of all columns of the row; stays so
  std::byte* block;
  std::span<float> moved;  // [block]: becomes what was added to each weight
  bool changed = false;    // whether anything was
};
/// Changes a block's numbers one after the other, each to where e H e^T is least while the others stay: scale and
/// minimum, then from the last column to the first a sub-block's packed numbers and its codes, or a trellis' codes
/// chain by chain. Of several rows, for which the moments are made ready once.
void improve_blocks(const Format& f, const BlockMoments& moments, std::span<ImprovedBlock> blocks);

/// How often a row's blocks are worth being improved.
int descents(const Format& f);

}  // namespace qsf
