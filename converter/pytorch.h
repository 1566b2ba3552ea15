// pytorch_model.bin, in both layouts that torch.save has had: a zip archive of data.pkl and data/KEY, or pickles that
// are followed by the storages (https://github.com/pytorch/pytorch/blob/main/torch/serialization.py).
#pragma once

#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Adds the tensors of a state dictionary to `out`. Types that cannot be read are listed with FormatId::inherit.
/// unsupported, naming it, for whatever is no tensor and for views that are neither contiguous nor transposed;
/// bad_input or truncated for damage; all name the file.
Status read_pytorch(const Input& file, std::vector<SourceTensor>& out);

}  // namespace qsf::convert
