// Tensors that Hugging Face checkpoints store as packed bytes with separate scales.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns unsupported, with the name of the method or key, unless join_packed can read the tensors of config.json's
/// "quantization_config".
Status check_packing(const Json& config);

/// Joins packed tensors with their scales:
/// - X_blocks (U8 [..., rows, groups, 16]) and X_scales (U8 [..., rows, groups]), the microscaling floats of gpt-oss,
///   become X (mxfp4 [..., rows, 32 groups]). X is `turned`: its rows are the columns of the unpacked tensor;
/// - X.weight (U8 [rows, cols / 2]), X.weight_scale (F8_E4M3 [rows, cols / 16]) and X.weight_scale_2 (one number) of
///   NVFP4, or X.weight_packed, X.weight_scale and X.weight_global_scale (a divisor), become X.weight (nvfp4_f32
///   [rows, cols]). Scales of inputs, keys and values are then left out;
/// - X.weight (U8 [rows / 4, cols]) and X.weight_scale (one number) of BitNet become X.weight (i2_s [rows, cols]).
/// With BitNet's quantization "online", the matrices of layers are rounded to three values when they are read. Returns
/// bad_input if two tensors do not fit each other.
Status join_packed(const Json& config, LoadedModel& out);

}  // namespace qsf::convert
