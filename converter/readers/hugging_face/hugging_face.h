// A Hugging Face model directory: config.json, generation_config.json, safetensors, tokenizer files.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

bool is_hugging_face(const ModelLocation& place);
/// Opens a directory. Returns bad_input for damage or contradictions, unsupported, by name, for anything that no recipe
/// covers.
Result<LoadedModel> open_hugging_face(const ModelLocation& place, bool with_tokenizer);

/// Adds the weights of a directory's files, safetensors or pickles, whole or in shards. Sets `kind`.
Status add_weights(const InputFolder& folder, LoadedModel& out);

/// Reads sizes and flags of config.json and generation_config.json, which may be null. Fills config and layers, and the
/// recipe if there is none. Accepts the keys of transformers before version 5 (rope_theta, rope_scaling) and since
/// (rope_parameters).
Status read_config(const Json& config, const Json& generation, LoadedModel& out);

}  // namespace qsf::convert
