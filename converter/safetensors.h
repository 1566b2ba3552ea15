// One safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes
// (https://github.com/huggingface/safetensors#format).
#pragma once

#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Adds the file's tensors to `out`. Types that cannot be read are listed with FormatId::inherit. bad_input or
/// truncated, naming the file, when the header contradicts itself or the file, when byte ranges overlap or leave gaps.
Status read_safetensors(const Input& file, std::vector<SourceTensor>& out);

}  // namespace qsf::convert
