// What is said of a model that makes embeddings: pooling, normalization, Dense modules.
#pragma once

#include <optional>
#include <vector>

#include "converter/model_source.h"

namespace qsf::convert {

/// Reads modules.json and the files of its modules; nothing where there is none. A model that has one and no output
/// head is one for embeddings only. unsupported, by name, for a module that the engine does not have.
Status read_sentence_transformers(const InputFolder& folder, ModelSource& model);

/// A model that makes embeddings so, and nothing else where it has no output head. `dense`: matrices [out, in] behind
/// the pooling, in their order. The model's sizes and tensors must be known. unsupported where the embedding would not
/// be as wide as the model.
Status take_embedding(ModelSource& model, std::optional<Pooling> pooling, bool normalize,
                      std::vector<SourceTensor> dense);

}  // namespace qsf::convert
