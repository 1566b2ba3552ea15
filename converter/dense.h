// The Dense modules of sentence-transformers: matrices between pooling and normalization.
#pragma once

#include <string>
#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Matrices [out, in] that are applied in their order, as the one matrix that is their product, of floats that are
/// rounded once from double precision. A single one stays as it is. bad_input where one does not take what the one
/// before gives; unsupported, naming it, for a type that cannot be read or a matrix that is too large. Each row of the
/// product is computed when it is asked for.
Result<SourceTensor> fold_dense(std::string name, std::vector<SourceTensor> matrices);

}  // namespace qsf::convert
