// One safetensors file: 8 bytes of header length, a JSON header, the tensors' bytes
// (https://github.com/huggingface/safetensors#format).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Adds the file's tensors to `out`; their rows_of read from `bytes`, which must outlive them. Types that cannot be
/// read are listed with FormatId::inherit. bad_input or truncated, naming `file`, when the header contradicts itself or
/// the file, when byte ranges overlap or leave gaps.
Status read_safetensors(std::span<const std::byte> bytes, std::string_view file, std::vector<SourceTensor>& out);

}  // namespace qsf::convert
