// Checkpoints with a header of 256 bytes that begins with a magic number, then tensors in a fixed order: llama2.c's
// later versions (export.py), bitllama2.c's ternary and qwen3.c's.
#pragma once

#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

/// Whether magic number, version and the header's numbers are those of a file of exactly this size.
bool is_checkpoint(const ModelPlace& place);
/// The tensors under the names that GGUF usually has; bad_input when it is no such file.
Result<std::vector<SourceTensor>> read_checkpoint(const ModelPlace& place);
/// Matrices of int8 with float scales become q8_f32 where groups are whole multiples of its block, else f32; ternary
/// ones i2_s; both keep every weight. tokenizer.bin, or qwen3.c's .tokenizer, is looked for beside the file.
/// unsupported when no recipe has the architecture.
Result<ModelSource> open_checkpoint(const ModelPlace& place, bool with_tokenizer);

}  // namespace qsf::convert
