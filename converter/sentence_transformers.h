// What sentence-transformers' files say of a model that makes embeddings: pooling, normalization.
#pragma once

#include "converter/model_source.h"

namespace qsf::convert {

/// Reads modules.json and the files of its modules; nothing where there is none. A model that has one and no output
/// head is one for embeddings only. unsupported, by name, for a module that the engine does not have.
Status read_sentence_transformers(const InputFolder& folder, ModelSource& model);

}  // namespace qsf::convert
