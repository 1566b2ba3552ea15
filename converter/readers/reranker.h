// Models that score pairs of texts: cross-encoders with one label, and Qwen3-Reranker, which answers yes or no.
#pragma once

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "converter/readers/gguf/gguf.h"

namespace qsf::convert {

/// The way in which a source states that it is a reranker.
enum class Reranker : std::uint8_t { none, head, yes_or_no };

/// Takes the head of a sequence classification model from the tensors of a Hugging Face directory, if it has one.
/// `config` is config.json, `place` the directory. Returns unsupported for a head of several labels; bad_input for one
/// that lacks a tensor.
Result<Reranker> read_reranker(const ModelLocation& place, const Json& config, LoadedModel& model);
/// Does the same with the tensors cls.* that llama.cpp's converter writes.
Result<Reranker> read_reranker(const Gguf& gguf, LoadedModel& model);

/// Takes the answers yes and no from the output head, if `kind` is yes_or_no, and states the form of a pair, if the
/// model has a tokenizer. Without one, the ids of the answers are those of the folder's tokenizer.json. Returns
/// bad_input if a token is missing.
Status finish_reranker(Reranker kind, const InputFolder& folder, LoadedModel& model);

}  // namespace qsf::convert
