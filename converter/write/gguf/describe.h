// A model in GGUF's words: the keys that recipes read from such a file.
#pragma once

#include "converter/model/model_source.h"
#include "converter/write/gguf/front.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

/// Writes the keys of the architecture: all that the recipe's sizes, layers and model name, and those of gguf_keys.h.
/// `layers` has a kind for every layer. Leaves out anything that GGUF cannot express.
void describe_model(const LoadedModel& model, const Header& header, const LayerTableBuilder& layers, GgufFront& front);

/// Writes tokenizer.*. Returns unsupported for a tokenizer whose pre-tokenizer has no name in GGUF.
Status describe_tokenizer(const LoadedModel& model, GgufFront& front);

/// Returns the contents of rope_freqs.weight: RoPE's divisors. Empty if there is no such tensor, because all divisors
/// are one number, which describe_model() writes.
std::vector<float> frequencies_to_write(const ModelConfig& config);

}  // namespace qsf::convert
