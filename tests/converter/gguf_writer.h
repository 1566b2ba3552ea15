// GGUF files for the tests, written from the format's description.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/support.h"

namespace qsf::test {

enum class GgmlType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 8, q4_k = 12, iq1_s = 19, bf16 = 30 };

/// A row of floats in a type, and what those bytes stand for.
Bytes ggml_row(GgmlType type, std::span<const float> row, std::span<float> values);

class GgufWriter {
 public:
  void u32(const std::string& key, std::uint32_t value);
  void f32(const std::string& key, float value);
  void flag(const std::string& key, bool value);
  void text(const std::string& key, const std::string& value);
  void texts(const std::string& key, const std::vector<std::string>& values);
  void f32s(const std::string& key, const std::vector<float>& values);
  void i32s(const std::string& key, const std::vector<std::int32_t>& values);
  /// Innermost extent first, as GGUF has them.
  void tensor(const std::string& name, GgmlType type, const std::vector<std::uint64_t>& shape, Bytes data);

  Bytes file() const;

 private:
  void key(const std::string& name, std::uint32_t type);

  struct Tensor {
    std::string name;
    GgmlType type;
    std::vector<std::uint64_t> shape;
    Bytes data;
  };
  Bytes values_;
  std::uint64_t n_values_ = 0;
  std::vector<Tensor> tensors_;
};

/// A Hugging Face llama or qwen directory of the fixtures as GGUF, as llama.cpp's converter writes it, with every
/// matrix in `type`. `weights` gets what the matrices hold then, under their Hugging Face names and in that order of
/// rows. No tokenizer.
GgufWriter gguf_of(const std::string& directory, GgmlType type, std::map<std::string, Weights>& weights);

}  // namespace qsf::test
