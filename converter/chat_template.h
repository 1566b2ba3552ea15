// The chat template that a model comes with, and the special tokens that it uses: kept in the file's metadata.
#pragma once

#include "converter/gguf.h"
#include "converter/json.h"
#include "converter/model_source.h"

namespace qsf::convert {

/// Fills model.chat from a Hugging Face directory: chat_template.jinja, or tokenizer_config.json's "chat_template", a
/// text or a list of named ones. `config` is tokenizer_config.json, or null. What cannot be kept is left out and told
/// in model.warnings.
Status read_chat_template(const InputFolder& folder, const Json& config, ModelSource& model);
/// The same from tokenizer.chat_template and tokenizer.chat_template.NAME.
void read_chat_template(const Gguf& gguf, ModelSource& model);

}  // namespace qsf::convert
