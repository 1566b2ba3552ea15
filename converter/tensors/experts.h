// Tensors of a mixture's experts as rows of one matrix: from one tensor for each expert, or from one of three
// dimensions.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/tensors/parts.h"

namespace qsf::convert {

/// Returns the tensors of the experts 0, 1 and so on as one, with a dimension more. Returns bad_input, by name, if
/// one differs from the first in shape or type. The tensors must outlive the result.
Result<std::shared_ptr<const LoadedTensor>> join_experts(std::string name,
                                                         std::span<const LoadedTensor* const> experts);

/// Returns [experts, rows, cols] as [experts * rows, cols], or for a vector's role [experts, n] as [experts * n]. If
/// `transposed`, every expert's matrix is transposed first, through the window. A tensor without this dimension is
/// returned as it is.
std::shared_ptr<const LoadedTensor> stack_experts(const std::shared_ptr<const LoadedTensor>& tensor, bool matrix,
                                                  bool transposed, const std::shared_ptr<TurnedWindow>& window);

}  // namespace qsf::convert
