// The rows of one tensor, from the source's format and order to the file's.
#pragma once

#include <cstdint>
#include <functional>

#include "converter/measure.h"
#include "converter/model_source.h"
#include "qsf/base/workers.h"

namespace qsf::convert {

/// head_dim for the roles whose rows RoPE rotates (queries, keys, their biases), 0 for all others.
std::uint32_t rotated_heads(Role role, std::uint32_t head_dim);

/// Heads whose first values RoPE rotates.
struct RotatedHeads {
  std::uint32_t dim = 0;  // 0: none
  std::uint32_t rotated = 0;
};

/// What errors in the rows of a tensor cost; null where they are rounded one by one.
using CostOf = std::function<const RowCost*()>;

/// How rows are brought into their format.
struct RowWork {
  CostOf cost_of = {};
  Workers workers = {};  // rows are shared out among them; the bytes do not depend on it
};

/// Rows of `tensor` in `target`, row by row. The same format is copied, any other goes through floats. `interleaved`
/// undoes RoPE over neighbouring pairs: in every head, position 2i + j moves to j * rotated / 2 + i. bad_input for
/// weights that are not finite or that `target`, an id that written_type() knows, cannot hold. `tensor` must outlive
/// the result.
RowsOf rows_as(const SourceTensor& tensor, FormatId target, std::uint32_t rows, std::uint32_t cols,
               RotatedHeads interleaved, RowWork work = {});

}  // namespace qsf::convert
