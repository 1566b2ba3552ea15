// The chat template of a model and the special tokens that it uses, for the file's metadata.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "converter/readers/gguf/gguf.h"

namespace qsf::convert {

/// Fills model.chat from a Hugging Face directory: chat_template.jinja, or "chat_template" of tokenizer_config.json,
/// which is a text or a list of named texts. `config` is tokenizer_config.json, or null. Templates that cannot be
/// stored are left out and reported in model.warnings.
Status read_chat_template(const InputFolder& folder, const Json& config, LoadedModel& model);
/// Fills model.chat from tokenizer.chat_template and tokenizer.chat_template.NAME.
void read_chat_template(const Gguf& gguf, LoadedModel& model);

/// Adds the special tokens that the stored templates name, as the model's tokenizer writes them, unless they are stored
/// already.
void keep_template_tokens(LoadedModel& model);

}  // namespace qsf::convert
