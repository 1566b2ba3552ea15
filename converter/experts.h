// Tensors of a mixture's experts: one for each expert, or several dimensions of one, as rows of one matrix.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "converter/model_source.h"

namespace qsf::convert {

/// Tensors of the experts 0, 1 and so on, one behind the other, as one with a dimension more. bad_input, naming it,
/// when one differs from the first in shape or type. What `experts` points to must outlive the result.
Result<std::shared_ptr<const SourceTensor>> join_experts(std::string name,
                                                         std::span<const SourceTensor* const> experts);

/// [experts, rows, cols] as [experts * rows, cols], where every expert's matrix is turned first when it is
/// `transposed`; of a vector's role [experts, n] as [experts * n]. What has no such dimension is as it was.
std::shared_ptr<const SourceTensor> stack_experts(const std::shared_ptr<const SourceTensor>& tensor, bool matrix,
                                                  bool transposed);

}  // namespace qsf::convert
