// Any bytes as what the converter reads: nothing may crash or take much memory, a refusal has a sentence, and what is
// taken can be planned or is refused there.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "converter/conversion/conversion.h"
#include "converter/quantize/losses.h"
#include "converter/readers/checkpoints/checkpoint.h"
#include "converter/readers/checkpoints/llama2c.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/readers/hugging_face/hugging_face.h"
#include "converter/readers/hugging_face/packed.h"
#include "converter/readers/hugging_face/pytorch.h"
#include "converter/readers/hugging_face/safetensors.h"
#include "converter/readers/hugging_face/text_part.h"
#include "converter/readers/inputs.h"
#include "converter/recipes/recipe_json.h"
#include "converter/tokenizers/tokenizers.h"
#include "tests/file/repair.h"
#include "tests/fuzz/converter_fuzz_checks.h"
#include "tests/fuzz/converter_parts_fuzz.h"

namespace qsf::test {

inline bool fuzz_place(const convert::ModelLocation& place, bool (*recognise)(const convert::ModelLocation&),
                       Result<convert::LoadedModel> (*open)(const convert::ModelLocation&, bool)) {
  if (!recognise(place)) return false;
  const Result<convert::LoadedModel> model = open(place, true);
  if (!good(model)) return false;
  if (model->config.vocab_size > 1u << 16) return false;  // the plan would hold as many tokens
  return good(convert::plan_file(*model, {})) || read_rows(model->tensors);
}

inline convert::ModelLocation place_of(FuzzBytes bytes) {
  convert::ModelLocation place;
  place.name = "fuzz";
  place.file = convert::input_of("fuzz", bytes);
  place.head.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(
                                                       std::min<std::size_t>(bytes.size(), convert::kHeadBytes)));
  place.folder.find = [](const std::string&) -> Result<std::optional<convert::Input>> {
    return std::optional<convert::Input>();
  };
  return place;
}

inline bool fuzz_tokens(const Result<TokenizerSource>& tokenizer) {
  return good(tokenizer) && (tokenizer->tokens.size() > 1u << 16 || good(build_tokenizer(*tokenizer)));
}

inline bool fuzz_gguf(FuzzBytes bytes) {
  const Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("fuzz", bytes));
  if (!good(gguf)) return false;
  read_rows(gguf->tensors);
  const Result<std::optional<TokenizerSource>> tokenizer = convert::read_gguf_tokenizer(*gguf);
  if (good(tokenizer) && *tokenizer && (*tokenizer)->tokens.size() <= 1u << 16) good(build_tokenizer(**tokenizer));
  fuzz_place(place_of(bytes), convert::is_gguf_file, convert::open_gguf);
  return true;
}

inline bool fuzz_safetensors(FuzzBytes bytes) {
  convert::LoadedModel model;
  if (!good(convert::read_safetensors(convert::input_of("fuzz", bytes), model.tensors))) return false;
  convert::take_text_tensors(model);
  return read_rows(model.tensors) && good(convert::join_packed(convert::Json::object(), model)) &&
         read_rows(model.tensors);
}

inline bool fuzz_pytorch(FuzzBytes bytes) {
  std::vector<convert::LoadedTensor> tensors;
  return good(convert::read_pytorch(convert::input_of("fuzz", bytes), tensors)) && read_rows(tensors);
}

inline bool fuzz_recipe(FuzzBytes bytes) {
  const Result<convert::Json> json = convert::read_json(convert::input_of("fuzz", bytes), 0, bytes.size());
  return good(json) && good(convert::read_recipe(*json, "fuzz"));
}

/// config.json, then after each form feed generation_config.json, model.safetensors.index.json and
/// tokenizer_config.json. Every other file is empty.
inline bool fuzz_hugging_face(FuzzBytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::map<std::string, std::string_view> files;
  std::size_t begin = 0;
  for (const char* name :
       {"config.json", "generation_config.json", "model.safetensors.index.json", "tokenizer_config.json"}) {
    const std::size_t end = text.find('\f', begin);
    if (begin <= text.size()) files[name] = text.substr(begin, end == text.npos ? end : end - begin);
    begin = end == text.npos ? text.size() + 1 : end + 1;
  }
  convert::ModelLocation place;
  place.name = "fuzz";
  place.folder.find = [&](const std::string& name) -> Result<std::optional<convert::Input>> {
    const auto at = files.find(name);
    if (at == files.end()) return std::optional<convert::Input>();
    return std::optional(convert::input_of(name, std::as_bytes(std::span(at->second))));
  };
  convert::LoadedModel source;
  const Result<convert::Json> config = convert::read_json(place.folder, "config.json");
  if (!good(config)) return false;
  const bool read = good(convert::read_config(convert::text_part(*config), convert::Json(nullptr), source));
  good(convert::open_place(place, true));
  return read;
}

inline bool fuzz_tokenizer_json(FuzzBytes bytes) {
  const Result<convert::Json> json = convert::read_json(convert::input_of("fuzz", bytes), 0, bytes.size());
  if (!good(json)) return false;
  return fuzz_tokens(convert::read_tokenizer_json(*json, convert::Json(nullptr)));
}

inline bool fuzz_sentencepiece(FuzzBytes bytes) {
  return fuzz_tokens(convert::is_tiktoken(bytes) ? convert::read_tiktoken(bytes) : convert::read_sentencepiece(bytes));
}
inline bool fuzz_llama2c(FuzzBytes bytes) {
  return fuzz_place(place_of(bytes), convert::is_llama2c, convert::open_llama2c);
}
inline bool fuzz_checkpoint(FuzzBytes bytes) {
  return fuzz_place(place_of(bytes), convert::is_checkpoint, convert::open_checkpoint);
}
/// Tables with checksums that fit state a model that can be planned, or is refused there.
inline bool fuzz_qsf(FuzzBytes bytes) {
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  if (repaired.size() < kHeaderSize || !convert::is_qsf(place_of(repaired))) return false;
  store_le(repaired.data() + 92, static_cast<std::uint32_t>(repaired.size()));
  repair(repaired, Inside::weights);
  const Result<convert::LoadedModel> model = convert::open_qsf(place_of(repaired), true);
  if (!good(model) || model->config.vocab_size > 1u << 16) return false;
  good(convert::plan_file(*model, {}));
  return read_rows(model->tensors);
}
inline bool fuzz_llama2c_tokenizer(FuzzBytes bytes) { return fuzz_tokens(convert::read_llama2c_tokenizer(bytes)); }
inline bool fuzz_qwen3c_tokenizer(FuzzBytes bytes) {
  const Result<convert::Qwen3cTokenizer> read = convert::read_qwen3c_tokenizer(bytes, 1u << 16);
  return good(read) && fuzz_tokens(read->source);
}

inline bool fuzz_losses(FuzzBytes bytes) { return good(convert::Losses::read(convert::input_of("fuzz", bytes))); }

/// One line per reader; its corpus lies in tests/fuzz/corpus/converter-<name>.
struct ConverterReader {
  std::string_view name;
  bool (*read)(FuzzBytes bytes);  // whether they are taken
};
inline constexpr std::array kConverterReaders{
    ConverterReader{"gguf", fuzz_gguf},
    ConverterReader{"qsf", fuzz_qsf},
    ConverterReader{"safetensors", fuzz_safetensors},
    ConverterReader{"pytorch", fuzz_pytorch},
    ConverterReader{"recipe", fuzz_recipe},
    ConverterReader{"hugging-face", fuzz_hugging_face},
    ConverterReader{"tokenizer-json", fuzz_tokenizer_json},
    ConverterReader{"sentencepiece", fuzz_sentencepiece},
    ConverterReader{"llama2c", fuzz_llama2c},
    ConverterReader{"checkpoint", fuzz_checkpoint},
    ConverterReader{"llama2c-tokenizer", fuzz_llama2c_tokenizer},
    ConverterReader{"qwen3c-tokenizer", fuzz_qwen3c_tokenizer},
    ConverterReader{"losses", fuzz_losses},
    ConverterReader{"imatrix", fuzz_imatrix},
    ConverterReader{"modules", fuzz_modules},
    ConverterReader{"zip", fuzz_zip},
};

inline bool fuzz_converter(std::string_view name, FuzzBytes bytes) {
  for (const ConverterReader& reader : kConverterReaders) {
    if (reader.name == name) return reader.read(bytes);
  }
  std::abort();
}

}  // namespace qsf::test
