// GGUF's type I2_S: several programs store several things under it, which only a tensor's size tells apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converter/input.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Where bytes lie in a file, and what is behind them.
struct TensorBytes {
  std::uint64_t begin = 0;
  std::uint64_t room = 0;  // up to the next tensor or the end
};

/// What the scales of an I2_S tensor of that name may be called.
std::vector<std::string> ternary_scale_names(std::string_view of);

/// Gives an I2_S tensor, which has name and shape, its format and rows; returns how many bytes are its own. `scales`
/// and where they lie: the tensor of its scales, or nullptr. bad_input when the layout does not fit the size, or none
/// does.
Result<std::uint64_t> place_ternary(const Input& file, TensorBytes at, const SourceTensor* scales,
                                    TensorBytes scales_at, TernaryLayout layout, SourceTensor& tensor);

}  // namespace qsf::convert
