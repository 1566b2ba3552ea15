// A model in GGUF's words: what recipes read of such a file, written.
#pragma once

#include "converter/gguf_front.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

/// Keys of the architecture: every one that the recipe's sizes, layers and model name, and those of gguf_keys.h.
/// `layers` has a kind for every layer. What GGUF cannot say is left out.
void describe_model(const ModelSource& model, const Header& header, const LayerTableSource& layers, GgufFront& front);

/// tokenizer.*: unsupported for a tokenizer whose pre-tokenizer GGUF has no name for.
Status describe_tokenizer(const ModelSource& model, GgufFront& front);

/// What rope_freqs.weight holds, empty where there is no such tensor: RoPE's divisors, unless all are one number, which
/// describe_model() writes.
std::vector<float> frequencies_to_write(const ModelConfig& config);

}  // namespace qsf::convert
