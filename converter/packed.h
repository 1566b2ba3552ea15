// Tensors that Hugging Face checkpoints keep as packed bytes, beside the scales that belong to them.
#pragma once

#include "converter/json.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Whether config.json's "quantization_config" is one whose tensors join_packed can read; unsupported, naming the
/// method or the key, otherwise.
Status check_packing(const Json& config);

/// Puts together what lies apart:
/// - X_blocks (U8 [..., rows, groups, 16]) and X_scales (U8 [..., rows, groups]), the microscaling floats of gpt-oss,
///   become X (mxfp4 [..., rows, 32 groups]), which is `turned`: rows where the unpacked tensor has columns;
/// - X.weight (U8 [rows / 4, cols]) and X.weight_scale (one number) of BitNet become X.weight (i2_s [rows, cols]).
/// With BitNet's quantization "online", the matrices of layers are rounded to three values as they are read.
/// bad_input when two tensors do not fit each other.
Status join_packed(const Json& config, ModelSource& out);

}  // namespace qsf::convert
