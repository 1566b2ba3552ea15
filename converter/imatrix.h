// llama.cpp's importance matrices: means of squares per column, made by llama-imatrix.
#pragma once

#include "converter/measure.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// What a GGUF file of llama-imatrix says of the model's matrices: columns by themselves; of experts their sum. Tensors
/// that the recipe does not name are left out. bad_input when the file has none of the model's, or when a number is no
/// sum of squares.
Result<Calibration> read_imatrix(const Input& file, const ModelSource& model);

}  // namespace qsf::convert
