// Weights of NVFP4 times a scale of their whole tensor, or of each expert.
#pragma once

#include <cstdint>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

/// GGML's NVFP4, and the same codes and sub-scales with a scale in each block.
inline constexpr FormatId kNvfp4 = ggml_type(40), kScaledNvfp4 = own_type(31);

/// Multiplies a tensor of kNvfp4, which becomes one of kScaledNvfp4 with the same codes. Each factor is that of
/// `rows_each` rows.
void scale_nvfp4(LoadedTensor& tensor, std::vector<float> factors, std::uint64_t rows_each);

}  // namespace qsf::convert
