// llama.cpp's importance matrices: mean squares of each column, made by llama-imatrix.
#pragma once

#include <string>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/rounding/measure.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns the calibration of a GGUF file of llama-imatrix. Columns are independent; a matrix of experts has the sum of
/// theirs. `warnings` counts experts that no token reached. Tensors that the recipe does not name are left out. Returns
/// bad_input if a matrix has another width or number of experts than the model's, if a layer of the model is missing
/// (llama-imatrix leaves out tensors outside layers), or if a number is not a sum of squares.
Result<Calibration> read_imatrix(const Input& file, const LoadedModel& model, std::vector<std::string>& warnings);

}  // namespace qsf::convert
