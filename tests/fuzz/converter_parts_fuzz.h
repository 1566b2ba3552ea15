// Any bytes as files that belong to a model, which is the same small one each time: an importance matrix, the modules
// of sentence-transformers; and as a zip archive by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/conversion/conversion.h"
#include "converter/files/zip.h"
#include "converter/quantize/imatrix.h"
#include "converter/readers/hugging_face/sentence_transformers.h"
#include "converter/readers/inputs.h"
#include "tests/fuzz/converter_fuzz_checks.h"

namespace qsf::test {

/// The files of a Llama of one layer without an output head of its own, whose weights are zeros.
inline const std::map<std::string, std::string, std::less<>>& small_llama_files() {
  static const std::map<std::string, std::string, std::less<>> files = [] {
    constexpr std::array<std::pair<const char*, std::array<int, 2>>, 11> kTensors{{
        {"model.embed_tokens.weight", {32, 32}},
        {"model.norm.weight", {0, 32}},
        {"model.layers.0.input_layernorm.weight", {0, 32}},
        {"model.layers.0.post_attention_layernorm.weight", {0, 32}},
        {"model.layers.0.self_attn.q_proj.weight", {32, 32}},
        {"model.layers.0.self_attn.k_proj.weight", {16, 32}},
        {"model.layers.0.self_attn.v_proj.weight", {16, 32}},
        {"model.layers.0.self_attn.o_proj.weight", {32, 32}},
        {"model.layers.0.mlp.gate_proj.weight", {32, 32}},
        {"model.layers.0.mlp.up_proj.weight", {32, 32}},
        {"model.layers.0.mlp.down_proj.weight", {32, 32}},
    }};
    std::string header = "{";
    std::size_t end = 0;
    for (const auto& [name, shape] : kTensors) {
      const std::size_t begin = end;
      end += std::size_t{4} * static_cast<std::size_t>(std::max(shape[0], 1)) * static_cast<std::size_t>(shape[1]);
      const std::string rows = shape[0] != 0 ? std::to_string(shape[0]) + "," : "";
      header += std::string(begin != 0 ? "," : "") + "\"" + name + R"(":{"dtype":"F32","shape":[)" + rows +
                std::to_string(shape[1]) + "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) +
                "]}";
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    std::string weights;
    for (int i = 0; i < 8; ++i) weights += static_cast<char>(header.size() >> (8 * i) & 255u);
    weights += header + std::string(end, '\0');
    return std::map<std::string, std::string, std::less<>>{
        {"config.json",
         R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "vocab_size": 32,)"
         R"("num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "hidden_act": "silu", "rope_theta": 10000.0,)"
         R"("rms_norm_eps": 1e-6, "max_position_embeddings": 64, "tie_word_embeddings": true})"},
        {"model.safetensors", std::move(weights)}};
  }();
  return files;
}

inline const convert::LoadedModel& small_llama() {
  static const convert::LoadedModel model = [] {
    convert::ModelLocation place;
    place.name = "small";
    place.folder.find = [](const std::string& name) -> Result<std::optional<convert::Input>> {
      const auto at = small_llama_files().find(name);
      if (at == small_llama_files().end()) return std::optional<convert::Input>();
      return std::optional(convert::input_of(name, std::as_bytes(std::span(at->second))));
    };
    Result<convert::LoadedModel> opened = convert::open_place(place, true);
    if (!good(opened)) std::abort();
    return std::move(*opened);
  }();
  return model;
}

inline bool fuzz_imatrix(FuzzBytes bytes) {
  std::vector<std::string> warnings;
  const auto read = convert::read_imatrix(convert::input_of("fuzz", bytes), small_llama(), warnings);
  if (!good(read)) return false;
  for (const auto& [place, moments] : *read) {
    if (!moments.sums || moments.sums->size() != moments.cols || moments.width != 1 || moments.n < 0) std::abort();
  }
  return true;
}

/// modules.json, then after each form feed the files of a pooling, of the model's settings and of a Dense module, whose
/// weights are last and may have form feeds.
inline bool fuzz_modules(FuzzBytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr std::array kNames{"modules.json",
                              "1_Pooling/config.json",
                              "sentence_bert_config.json",
                              "config_sentence_transformers.json",
                              "2_Dense/config.json",
                              "2_Dense/model.safetensors"};
  std::map<std::string, std::string_view, std::less<>> files;
  std::size_t begin = 0;
  for (const char* name : kNames) {
    const std::size_t end = name == kNames.back() ? text.npos : text.find('\f', begin);
    const std::string_view part = text.substr(begin, end == text.npos ? end : end - begin);
    if (!part.empty()) files[name] = part;
    begin = end == text.npos ? text.size() : end + 1;
  }
  const convert::InputFolder folder{
      "fuzz", [&](const std::string& name) -> Result<std::optional<convert::Input>> {
        const auto at = files.find(name);
        if (at == files.end()) return std::optional<convert::Input>();
        return std::optional(convert::input_of(name, std::as_bytes(std::span(at->second))));
      }};
  convert::LoadedModel model = small_llama();
  if (!good(convert::read_sentence_transformers(folder, model))) return false;
  return read_rows(model.tensors) && good(convert::plan_file(model, {}));
}

inline bool fuzz_zip(FuzzBytes bytes) {
  const Result<convert::ZipEntries> entries = convert::read_zip(convert::input_of("fuzz", bytes));
  if (!good(entries)) return false;
  std::vector<convert::ZipEntry> in_order;
  for (const auto& [name, entry] : *entries) in_order.push_back(entry);
  std::ranges::sort(in_order, {}, [](const convert::ZipEntry& e) { return std::pair(e.begin, e.size); });
  std::uint64_t last = 0;
  for (const convert::ZipEntry& entry : in_order) {
    if (entry.begin < last || entry.begin > bytes.size() || entry.size > bytes.size() - entry.begin) std::abort();
    last = entry.begin + entry.size;
  }
  return true;
}

}  // namespace qsf::test
