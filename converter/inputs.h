// The kinds of model that can be read: one line each.
#pragma once

#include <array>
#include <string>

#include "converter/checkpoint.h"
#include "converter/gguf.h"
#include "converter/hugging_face.h"
#include "converter/llama2c.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"

namespace qsf::convert {

struct InputKind {
  const char* name;
  const char* description;
  bool (*recognise)(const ModelPlace& place);
  Result<ModelSource> (*open)(const ModelPlace& place, bool with_tokenizer);
};

/// Tried in this order; those with a sure sign come first.
inline constexpr std::array kInputKinds{
    InputKind{"hf", "a Hugging Face directory with config.json and safetensors or pytorch_model.bin", is_hugging_face,
              open_hugging_face},
    InputKind{"gguf", "a GGUF file, version 2 or 3, or any part of a divided one", is_gguf_file, open_gguf},
    InputKind{"checkpoint",
              "a checkpoint with a magic number: llama2.c's (ak42; float32, int8), ternary, qwen3.c's (ajc1)",
              is_checkpoint, open_checkpoint},
    InputKind{"llama2c", "a llama2.c checkpoint (.bin) with its tokenizer.bin beside it", is_llama2c, open_llama2c},
};

/// Opens whatever lies at `path`, with its own tokenizer or without any. io_error when nothing is there, unsupported
/// when no kind recognises it.
/// `recipe`: a file with a recipe to use instead of the compiled-in ones, or nothing. `ternary`: how I2_S tensors lie.
Result<ModelSource> open_model(const std::string& path, bool with_tokenizer = true, const std::string& recipe = {},
                               TernaryLayout ternary = TernaryLayout::automatic);

/// The same from anywhere else.
Result<ModelSource> open_place(const ModelPlace& place, bool with_tokenizer);

/// Fills model.tokenizer from a file of its own.
Status read_tokenizer_file(const std::string& path, ModelSource& model);

}  // namespace qsf::convert
