// A llama2.c checkpoint in its first ("legacy") form: seven int32, then float32 tensors in a fixed order
// (https://github.com/karpathy/llama2.c, run.c and export.py).
#pragma once

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Whether the header's numbers give exactly the file's size: the format has no magic number.
bool is_llama2c(const ModelPlace& place);
/// The tokenizer is looked for beside the file (tokenizer.bin, tok<vocabulary>.bin); without one there is a warning.
Result<ModelSource> open_llama2c(const ModelPlace& place, bool with_tokenizer);

/// Begin and end tokens as all of llama2.c's vocabularies have them, and the tokenizer beside the file.
Status add_llama2c_tokens(const ModelPlace& place, bool with_tokenizer, ModelSource& out);

}  // namespace qsf::convert
