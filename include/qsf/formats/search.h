// Quantization with a cost: a search for the scales and codes whose errors cost least, in place of rounding one by one.
#pragma once

#include <cstddef>
#include <span>

#include "qsf/formats/format.h"

namespace qsf {

/// The cost of the errors e of a block's weights: the sum of cost[i] * (e[i] + sum over j > i of carry[i][j] * e[j])^2.
/// It is e H e^T if H, the second moments of the columns, is U^T D U with U unit upper triangular, and columns are
/// eliminated from the last. This is the LDLQ of QuIP (Chee et al. 2023), or GPTQ (Frantar et al. 2022) in other words.
struct BlockCost {
  std::span<const float> cost;   // [block], at least 0; empty: ones
  const float* carry = nullptr;  // [block] rows of `stride` floats, read to the right of the diagonal; or null
  std::size_t stride = 0;
};

/// A block of a row.
struct SearchedBlock {
  std::span<const float> weights;  // [block]
  std::byte* out;
  std::span<float> away{};  // [block] or empty: receives errors plus carried errors
  double cost = 0;          // of the errors
};
/// Quantizes blocks as quantize_block does, with the scales, minima and codes whose errors cost least. The blocks
/// belong to rows whose errors have the same cost, so that the preparation of the cost is shared. f must be a quantized
/// format that has no search of its own.
void search_blocks(const Format& f, const BlockCost& cost, std::span<SearchedBlock> blocks);

/// Quantizes a block by search_blocks, or by quantize_block if that costs less. Returns the cost of the errors.
double best_block(const Format& f, std::span<const float> weights, const BlockCost& cost, std::byte* out);

/// Searches for the scales and codes of a block whose errors cost little.
using SearchBlock = void(std::span<const float> weights, const BlockCost& cost, std::byte* out);

/// Returns the search of a format with Rounding::elsewhere; null for others.
SearchBlock* search_of(const Format& f);

/// Second moments H of the columns that a block's weights are multiplied with: [block] rows of `stride` floats.
struct BlockMoments {
  const float* h;
  std::size_t stride;
};

/// A block of a row.
struct ImprovedBlock {
  std::span<float> pull;  // [block]: H e of its columns, with e the errors of all columns of the row; kept current
  std::byte* block;
  std::span<float> moved;  // [block]: receives the change of each weight
  bool changed = false;    // whether any number changed
};
/// Changes a block's numbers one at a time, each to the value with the least e H e^T while the others stay. The scale
/// and minimum come first. From the last column to the first follow each sub-block's packed numbers and its codes, or a
/// trellis' codes chain by chain. The blocks belong to several rows, so that the preparation of the moments is shared.
void improve_blocks(const Format& f, const BlockMoments& moments, std::span<ImprovedBlock> blocks);

/// Returns the number of improvements of a row's blocks that are worth their time.
int descents(const Format& f);

}  // namespace qsf
