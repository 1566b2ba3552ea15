// Multimodal checkpoints: the text model in them, and what else they hold.
#pragma once

#include "converter/json.h"
#include "converter/model_source.h"

namespace qsf::convert {

/// config.json of the text model alone: "text_config" with what only the whole says of tokens, ties and quantization;
/// the whole where there is no such object.
Json text_part(const Json& config);

/// Gives tensors of the text model their own names ("model.language_model.norm.weight" becomes "model.norm.weight") and
/// leaves out those of images and sound, with a warning that says how many of which.
void take_text_tensors(ModelSource& out);

/// Leaves out tensors of heads that guess several tokens ahead, with a warning; not those that the recipe names.
void leave_out_guessing(ModelSource& out);

}  // namespace qsf::convert
