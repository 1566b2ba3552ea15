// Embedding models of sentence-transformers: pooling, normalization, Dense modules.
#pragma once

#include <optional>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

/// Reads modules.json and the files of its modules, if there are any. A model with modules and without an output head
/// makes embeddings only. Returns unsupported, by name, for a module that the engine does not have.
Status read_sentence_transformers(const InputFolder& folder, LoadedModel& model);

/// Sets how the model makes embeddings. A model without an output head makes nothing else. `dense` are the matrices
/// [out, in] after the pooling, in their order. The model's sizes and tensors must be known. Returns unsupported if the
/// embedding is not as wide as the model.
Status take_embedding(LoadedModel& model, std::optional<Pooling> pooling, bool normalize,
                      std::vector<LoadedTensor> dense);

}  // namespace qsf::convert
