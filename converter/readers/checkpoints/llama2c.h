// A llama2.c checkpoint in its first ("legacy") form: seven int32, then float32 tensors in a fixed order
// (https://github.com/karpathy/llama2.c, run.c and export.py).
#pragma once

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns whether the header's numbers give exactly the file's size. The format has no magic number.
bool is_llama2c(const ModelLocation& place);
/// Opens a checkpoint. Searches for the tokenizer next to the file (tokenizer.bin, tok<vocabulary>.bin) and warns if
/// there is none.
Result<LoadedModel> open_llama2c(const ModelLocation& place, bool with_tokenizer);

/// Adds the begin and end tokens of all llama2.c vocabularies, and the tokenizer next to the file.
Status add_llama2c_tokens(const ModelLocation& place, bool with_tokenizer, LoadedModel& out);

}  // namespace qsf::convert
