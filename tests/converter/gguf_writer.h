// GGUF files for the tests.
#pragma once

#include <map>
#include <span>
#include <string>

#include "converter/support.h"
#include "support/gguf.h"

namespace qsf::test {

/// A row of floats in a type, and what those bytes stand for.
Bytes ggml_row(GgmlType type, std::span<const float> row, std::span<float> values);

/// A Hugging Face llama or qwen directory of the fixtures as GGUF, as llama.cpp's converter writes it, with every
/// matrix in `type`. `weights` gets what the matrices hold then, under their Hugging Face names and in that order of
/// rows. No tokenizer.
GgufWriter gguf_of(const std::string& directory, GgmlType type, std::map<std::string, Weights>& weights);

/// Returns llama.cpp's name of a tensor of BERT or XLM-RoBERTa.
std::string gguf_encoder_name(std::string name);

}  // namespace qsf::test
