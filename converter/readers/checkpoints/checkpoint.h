// Checkpoints with a header of 256 bytes that begins with a magic number, then tensors in a fixed order: later versions
// of llama2.c (export.py), ternary ones of bitllama2.c, and those of qwen3.c.
#pragma once

#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Returns whether magic number, version and the header's numbers fit a file of exactly this size.
bool is_checkpoint(const ModelLocation& place);
/// Returns the tensors under GGUF's usual names, or bad_input for any other file.
Result<std::vector<LoadedTensor>> read_checkpoint(const ModelLocation& place);
/// Opens a checkpoint. Int8 matrices with float scales become q8_f32 if groups are whole multiples of its block,
/// otherwise f32. Ternary ones become i2_s. Both keep every weight exactly. Searches for tokenizer.bin, or qwen3.c's
/// .tokenizer, next to the file. Returns unsupported if no recipe has the architecture.
Result<LoadedModel> open_checkpoint(const ModelLocation& place, bool with_tokenizer);

}  // namespace qsf::convert
