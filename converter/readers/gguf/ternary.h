// GGUF's type I2_S, which several programs use for different layouts. Only a tensor's size distinguishes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "converter/files/input.h"
#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// The position of bytes in a file, and the room up to the next tensor.
struct TensorBytes {
  std::uint64_t begin = 0;
  std::uint64_t room = 0;  // up to the next tensor or the end of the file
};

/// Returns the possible names of the scales of an I2_S tensor.
std::vector<std::string> ternary_scale_names(std::string_view of);

/// Gives an I2_S tensor, which has a name and a shape, its format and rows. Returns the number of its own bytes.
/// `scales`, which may be null, is the tensor of its scales, at `scales_at`. Returns bad_input if the layout does not
/// fit the size, or if no layout does.
Result<std::uint64_t> place_ternary(const Input& file, TensorBytes at, const LoadedTensor* scales,
                                    TensorBytes scales_at, TernaryLayout layout, LoadedTensor& tensor);

}  // namespace qsf::convert
