// The Dense modules of sentence-transformers: matrices between pooling and normalization.
#pragma once

#include <string>
#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns the product of the matrices [out, in], applied in their order, as one matrix of floats that are rounded once
/// from double precision. A single matrix does not change. Each row of the product is computed when it is read. Returns
/// bad_input if a matrix does not fit the one before it; unsupported, by name, for a type that cannot be read or a
/// matrix that is too large.
Result<LoadedTensor> fold_dense(std::string name, std::vector<LoadedTensor> matrices);

}  // namespace qsf::convert
