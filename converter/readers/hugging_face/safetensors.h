// One safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes
// (https://github.com/huggingface/safetensors#format).
#pragma once

#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Adds the file's tensors to `out`. Lists types that cannot be read with FormatId::inherit. Returns bad_input or
/// truncated, with the file's name, if the header contradicts itself or the file, or if byte ranges overlap or leave
/// gaps.
Status read_safetensors(const Input& file, std::vector<LoadedTensor>& out);

}  // namespace qsf::convert
