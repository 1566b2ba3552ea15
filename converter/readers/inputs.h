// The kinds of model that can be read, one line each.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "converter/model/model_source.h"
#include "converter/readers/checkpoints/checkpoint.h"
#include "converter/readers/checkpoints/llama2c.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/hugging_face/hugging_face.h"
#include "converter/readers/qsf/qsf.h"
#include "qsf/base/result.h"

namespace qsf::convert {

struct InputKind {
  const char* name;
  const char* description;
  bool (*recognise)(const ModelLocation& place);
  Result<LoadedModel> (*open)(const ModelLocation& place, bool with_tokenizer);
};

/// All kinds in the order in which they are tried. Kinds with an unambiguous mark come first.
inline constexpr std::array kInputKinds{
    InputKind{"qsf", "a .qsf file, whose weights get other types", is_qsf, open_qsf},
    InputKind{"hf", "a Hugging Face directory with config.json and safetensors or pytorch_model.bin", is_hugging_face,
              open_hugging_face},
    InputKind{"gguf", "a GGUF file, version 2 or 3, or any part of a divided one", is_gguf_file, open_gguf},
    InputKind{"checkpoint",
              "a checkpoint with a magic number: llama2.c's (ak42; float32, int8), ternary, qwen3.c's (ajc1)",
              is_checkpoint, open_checkpoint},
    InputKind{"llama2c", "a llama2.c checkpoint (.bin) with its tokenizer.bin next to it", is_llama2c, open_llama2c},
};

/// Opens the model at `path`, with its own tokenizer or without one. `recipe` is the path of a recipe that replaces the
/// compiled-in ones, or empty. `ternary` is the layout of I2_S tensors. `files` opens all files. Returns io_error if
/// nothing is there, unsupported if no kind recognises it.
Result<LoadedModel> open_model(const std::string& path, bool with_tokenizer = true, const std::string& recipe = {},
                               TernaryLayout ternary = TernaryLayout::automatic,
                               std::shared_ptr<LocalFiles> files = std::make_shared<LocalFiles>());
/// Whether a kind recognises the place.
bool is_recognised(const ModelLocation& place);

/// The same for any file or folder.
Result<LoadedModel> open_place(const ModelLocation& place, bool with_tokenizer);

/// Reads a recipe that replaces the compiled-in ones.
Result<std::shared_ptr<const Recipe>> read_recipe_file(const std::string& path, LocalFiles& files);

/// Fills model.tokenizer from a separate file.
Status read_tokenizer_file(const std::string& path, LoadedModel& model);

}  // namespace qsf::convert
