// A .qsf file as a model to convert: its weights in other types, or as GGUF.
#pragma once

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

bool is_qsf(const ModelLocation& place);
/// Reads tables and tokenizer. A segment is read, checked and decompressed when its rows are. Errors are those of
/// read_tables and tokenizer_source.
Result<LoadedModel> open_qsf(const ModelLocation& place, bool with_tokenizer);

}  // namespace qsf::convert
