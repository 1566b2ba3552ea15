// pytorch_model.bin in both layouts of torch.save: a zip archive of data.pkl and data/KEY, or pickles followed by the
// storages (https://github.com/pytorch/pytorch/blob/main/torch/serialization.py).
#pragma once

#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Adds the tensors of a state dictionary to `out`. Lists types that cannot be read with FormatId::inherit. Returns
/// unsupported, by name, for entries that are not tensors and for views that are neither contiguous nor transposed;
/// bad_input or truncated for damage. All errors name the file.
Status read_pytorch(const Input& file, std::vector<LoadedTensor>& out);

}  // namespace qsf::convert
