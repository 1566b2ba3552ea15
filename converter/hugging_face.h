// A Hugging Face model directory: config.json, generation_config.json, safetensors, tokenizer files.
#pragma once

#include "converter/json.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

bool is_hugging_face(const ModelPlace& place);
/// bad_input for damage or contradictions, unsupported (naming it) for what no recipe covers.
Result<ModelSource> open_hugging_face(const ModelPlace& place, bool with_tokenizer);

/// Adds the weights of a directory's files, safetensors or pickles, whole or in shards, and sets `kind`.
Status add_weights(const InputFolder& folder, ModelSource& out);

/// config.json and generation_config.json (null when there is none) as sizes and flags; fills config and layers, and
/// the recipe where there is none. Keys are read as transformers writes them before and since version 5 (rope_theta and
/// rope_scaling, or rope_parameters).
Status read_config(const Json& config, const Json& generation, ModelSource& out);

}  // namespace qsf::convert
