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

/// Blocks of several rows, whose errors cost the same: what the cost alone says is found out once.
struct SearchedBlock {
  std::span<const float> weights;
  std::byte* out;
  double cost = 0;
};
void search_blocks(const Format& f, const BlockCost& cost, std::span<SearchedBlock> blocks);

/// As search_block, or what quantize_block gives where that costs less.
double best_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out);

/// Second moments H of the columns that a block's weights are multiplied with: [block] rows of `stride` floats.
struct BlockMoments {
  const float* h;
  std::size_t stride;
};

/// Changes a block's numbers one after the other, each to where e H e^T is least while the others stay: scale and
/// minimum, then from the last column to the first a sub-block's packed numbers and its codes, or a trellis' codes
/// chain by chain. `pull` is H e of the block's columns, with e the errors of all columns of the row, and stays so;
/// `moved` becomes what was added to each weight. pull.size() == moved.size() == f.block. Whether anything changed.
bool improve_block(const Format& f, const BlockMoments& moments, std::span<float> pull, std::byte* block,
                   std::span<float> moved);

/// The same of a block of each of several rows, for which the moments are made ready once.
struct ImprovedBlock {
  std::span<float> pull;
  std::byte* block;
  std::span<float> moved;
  bool changed = false;
};
void improve_blocks(const Format& f, const BlockMoments& moments, std::span<ImprovedBlock> blocks);

}  // namespace qsf
