// The text model in a multimodal checkpoint.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"

namespace qsf::convert {

/// Returns config.json of the text model alone: "text_config", with the keys for tokens, ties and quantization that
/// only the whole has. Returns the whole if there is no such object.
Json text_part(const Json& config);

/// Gives tensors of the text model their own names ("model.language_model.norm.weight" becomes "model.norm.weight").
/// Leaves out those of images and sound, with a warning that counts them by kind.
void take_text_tensors(LoadedModel& out);

/// Decides whether the first layer that guesses further tokens is kept: it has the usual names. Leaves out the tensors
/// of others and of heads that predict several tokens ahead, with a warning, except tensors that the recipe names, and
/// the kept one's copies of the embedding and the head.
void take_guess_layer(LoadedModel& out);

}  // namespace qsf::convert
