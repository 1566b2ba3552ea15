#include "converter/readers/reranker.h"

#include <algorithm>
#include <array>
#include <memory>

#include "converter/recipes/settings.h"
#include "converter/tensors/rows.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

/// The names of a head's tensors; empty for one that such a head does not have.
struct Head {
  std::string_view score, score_bias, dense, dense_bias, norm;
  bool needs_dense;
  Pooling pooling;
  std::string_view activation;  // of the dense matrix
};
constexpr std::array kHeads{
    Head{"classifier.out_proj.weight", "classifier.out_proj.bias", "classifier.dense.weight", "classifier.dense.bias",
         "", true, Pooling::first, "tanh"},  // RoBERTa
    Head{"classifier.weight", "classifier.bias", "head.dense.weight", "head.dense.bias", "head.norm.weight", true,
         Pooling::first, "gelu"},  // ModernBERT
    Head{"classifier.weight", "classifier.bias", "pre_classifier.weight", "pre_classifier.bias", "", true,
         Pooling::first, "relu"},  // DistilBERT
    Head{"classifier.weight", "classifier.bias", "pooler.dense.weight", "pooler.dense.bias", "", true, Pooling::first,
         "tanh"},                                                    // BERT
    Head{"score.weight", "", "", "", "", false, Pooling::last, ""},  // causal models
};
constexpr Head kGgufHead{
    "cls.output.weight", "cls.output.bias", "cls.weight", "cls.bias", "cls.norm.weight", true, Pooling::first, "tanh"};

/// The numbers of the key score_activation.
constexpr std::array<std::string_view, 4> kActivations{"tanh", "gelu", "relu", "silu"};

/// Qwen3-Reranker's own words.
constexpr std::string_view kYesOrNo =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a "
    "web search query, retrieve relevant passages that answer the query\n<Query>: {query}\n<Document>: "
    "{document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr std::string_view kTemplate = "chat.template.rerank";

LoadedTensor* find_tensor(LoadedModel& model, std::string_view name) {
  const auto found = std::ranges::find(model.tensors, name, &LoadedTensor::name);
  return found == model.tensors.end() || name.empty() ? nullptr : &*found;
}

std::string role_name(const LoadedModel& model, Role role) { return name_of(*model.recipe, model.naming, role, 0); }

void rename(LoadedModel& model, std::string_view from, Role to) {
  if (LoadedTensor* const tensor = find_tensor(model, from)) tensor->name = role_name(model, to);
}

/// Makes one row of floats of a matrix: `row`, minus `less` if that is given.
Result<LoadedTensor> row_of(const LoadedTensor& matrix, std::string name, std::uint32_t row,
                            std::optional<std::uint32_t> less) {
  const auto shape = matrix_shape(matrix.shape);
  if (!shape || matrix.format == FormatId::inherit || std::max(row, less.value_or(0)) >= (*shape)[0]) {
    return make_error(ErrorCode::bad_input, "tensor {:.100} has no row {} that can be read", matrix.name,
                      std::max(row, less.value_or(0)));
  }
  const std::uint32_t rows = (*shape)[0], cols = (*shape)[1];
  LoadedTensor out;
  out.name = std::move(name);
  out.type = "F32";
  out.format = FormatId::f32;
  out.shape = {cols};
  const auto weights_of = [shared = std::make_shared<const LoadedTensor>(matrix), rows, cols, row, less](
                              std::uint32_t, std::span<float> weights) -> Status {
    const RowsOf floats = rows_as(*shared, FormatId::f32, rows, cols, {}).rows_of;
    QSF_TRY(floats(row, 1, std::as_writable_bytes(weights)));
    if (!less) return {};
    std::vector<float> other(cols);
    QSF_TRY(floats(*less, 1, std::as_writable_bytes(std::span(other))));
    for (std::uint32_t i = 0; i < cols; ++i) weights[i] -= other[i];
    return {};
  };
  out.rows_of = rows_made(FormatId::f32, cols, out.name, weights_of);
  return out;
}

/// Adds the row of a pair's second text, if the model has several types of tokens.
Status add_second(LoadedModel& model, std::string_view types) {
  const LoadedTensor* const table = find_tensor(model, types);
  if (table == nullptr || table->shape.size() != 2 || table->shape[0] < 2) return {};
  QSF_LET(second, row_of(*table, role_name(model, Role::second_bias), 1, {}));
  model.tensors.push_back(std::move(second));
  return {};
}

void set_score(LoadedModel& model, std::uint32_t score, Pooling pooling) {
  model.layers.model.push_back(model_setting("headless", 1));
  model.layers.model.push_back(model_setting("score", score));
  model.layers.model.push_back(model_setting("pooling", static_cast<double>(pooling)));
}

Status take_head(LoadedModel& model, const Head& head, Pooling pooling, std::string_view activation) {
  LoadedTensor& score = *find_tensor(model, head.score);
  const auto shape = matrix_shape(score.shape);
  if (!shape || (*shape)[0] != 1) {
    return make_error(ErrorCode::unsupported, "tensor {:.60} makes {} values of a text; a reranker makes one",
                      score.name, shape ? (*shape)[0] : 0);
  }
  score.shape = {(*shape)[1]};
  score.name = role_name(model, Role::score);
  if (head.needs_dense && find_tensor(model, head.dense) == nullptr) {
    return make_error(ErrorCode::bad_input, "the tensor {} is missing, without which scores would be wrong",
                      head.dense);
  }
  rename(model, head.score_bias, Role::score_bias);
  rename(model, head.dense, Role::dense);
  rename(model, head.dense_bias, Role::dense_bias);
  rename(model, head.norm, Role::score_norm);
  set_score(model, 1, pooling);
  if (!head.needs_dense) return {};
  const auto* const named = std::ranges::find(kActivations, activation);
  if (named == kActivations.end()) {
    return make_error(ErrorCode::unsupported, "the activation \"{:.40}\" of the classifier is not supported",
                      activation);
  }
  model.layers.model.push_back(model_setting("score_activation", static_cast<double>(named - kActivations.begin())));
  return {};
}

bool contains(std::string text, std::string_view part) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + ('a' - 'A')) : c; });
  return text.find(part) != text.npos;
}

/// Returns whether the directory calls itself Qwen3-Reranker, whose files are those of a model that generates text.
Result<bool> answers_yes_or_no(const ModelLocation& place, const Json& config, const LoadedModel& model) {
  constexpr std::uint64_t kMostBytes = 1u << 20;
  if (model.recipe->name != "qwen3") return false;
  const Json* const given = find(config, "_name_or_path");
  const std::string* const path = given ? as_text(*given) : nullptr;
  if (contains(place.name, "qwen3-reranker") || (path && contains(*path, "qwen3-reranker"))) return true;
  QSF_LET(readme, place.folder.find("README.md"));
  if (!readme || readme->size > kMostBytes) return false;
  QSF_LET(bytes, read_head(*readme, readme->size));
  return contains({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "# qwen3-reranker");
}

/// Takes the difference of two rows, whose sigmoid is the share of the first row's token in the probability of both.
Status take_difference(LoadedModel& model, const LoadedTensor& rows, std::uint32_t yes, std::uint32_t no) {
  QSF_LET(score, row_of(rows, role_name(model, Role::score), yes, no));
  model.tensors.push_back(std::move(score));
  set_score(model, 2, Pooling::last);
  return {};
}

/// Returns the id of a token, also of a folder whose tokenizer was not asked for; empty if there is none.
std::optional<std::uint32_t> id_of(const LoadedModel& model, const Json& tokenizer, std::string_view text) {
  if (model.tokenizer) {
    const auto found = std::ranges::find(model.tokenizer->tokens, text, &TokenizerSource::Token::text);
    if (found == model.tokenizer->tokens.end()) return {};
    return static_cast<std::uint32_t>(found - model.tokenizer->tokens.begin());
  }
  const Json* const kind = find(tokenizer, "model");
  const Json* const vocab = kind ? find(*kind, "vocab") : nullptr;
  const Json* const id = vocab ? find(*vocab, text) : nullptr;
  const std::optional<std::uint64_t> number = id ? as_u64(*id) : std::nullopt;
  return number && *number < kMaxVocab ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

Status take_answers(const InputFolder& folder, LoadedModel& model) {
  Json tokenizer;
  if (!model.tokenizer) {
    QSF_LET(read, read_json(folder, "tokenizer.json"));
    tokenizer = std::move(read);
  }
  const std::optional<std::uint32_t> yes = id_of(model, tokenizer, "yes"), no = id_of(model, tokenizer, "no");
  if (!yes || !no) {
    return make_error(ErrorCode::bad_input, "the tokenizer of this reranker has no token yes or no token no");
  }
  const std::string head = role_name(model, Role::head);
  const LoadedTensor* rows = find_tensor(model, head);
  if (rows == nullptr) rows = find_tensor(model, role_name(model, Role::token_embd));
  if (rows == nullptr) return make_error(ErrorCode::bad_input, "the tensor {:.60} is missing", head);
  QSF_TRY(take_difference(model, LoadedTensor(*rows), *yes, *no));
  std::erase_if(model.tensors, [&](const LoadedTensor& tensor) { return tensor.name == head; });
  return {};
}

}  // namespace

Result<Reranker> read_reranker(const ModelLocation& place, const Json& config, LoadedModel& model) {
  Fields fields(config, "config.json");
  const std::string activation = fields.text("classifier_activation", "");
  const std::string pooling = fields.text("classifier_pooling", "");
  QSF_TRY(fields.status());
  for (const Head& head : kHeads) {
    if (find_tensor(model, head.score) == nullptr) continue;
    const bool last = &head == &kHeads.back();
    const bool only = head.dense == "pooler.dense.weight";  // the others of this name may have none of their own
    if (!last && !only && find_tensor(model, head.dense) == nullptr) continue;
    QSF_TRY(add_second(model, "embeddings.token_type_embeddings.weight"));
    QSF_TRY(take_head(model, head, pooling == "mean" ? Pooling::mean : head.pooling,
                      activation.empty() ? head.activation : activation));
    return Reranker::head;
  }
  QSF_LET(answers, answers_yes_or_no(place, config, model));
  return answers ? Reranker::yes_or_no : Reranker::none;
}

Result<Reranker> read_reranker(const Gguf& gguf, LoadedModel& model) {
  const LoadedTensor* const score = find_tensor(model, kGgufHead.score);
  if (score == nullptr) return Reranker::none;
  const std::string architecture(gguf.text(gguf_key::kArchitecture).value_or(""));
  const auto text = [&](std::string_view key) { return gguf.text(architecture + ".classifier." + std::string(key)); };
  if (score->shape.size() == 2 && score->shape[0] == 2) {
    const auto labels = gguf.texts(architecture + ".classifier.output_labels");
    if (!labels || *labels != std::vector<std::string_view>{"yes", "no"}) {
      return make_error(ErrorCode::unsupported, "GGUF: the labels of the two values of {} are not yes and no",
                        kGgufHead.score);
    }
    QSF_TRY(take_difference(model, LoadedTensor(*score), 0, 1));
    std::erase_if(model.tensors, [](const LoadedTensor& tensor) { return tensor.name == kGgufHead.score; });
    return Reranker::head;
  }
  Head head = kGgufHead;
  const bool modern = model.recipe->name == "modernbert";
  if (modern) head.activation = "gelu";
  ModelKind kind;
  apply_settings(model.layers.model, kind);
  const bool encodes = kind.headless != 0;  // by its recipe
  if (!encodes) {
    head.needs_dense = false;
    head.pooling = Pooling::last;
  }
  const auto pooling = gguf.u32(architecture + ".classifier.pooling_type");
  const bool mean = pooling && *pooling == static_cast<std::uint32_t>(Pooling::mean);
  QSF_TRY(add_second(model, "token_types.weight"));
  QSF_TRY(take_head(model, head, mean ? Pooling::mean : head.pooling, text("activation").value_or(head.activation)));
  return Reranker::head;
}

Status finish_reranker(Reranker kind, const InputFolder& folder, LoadedModel& model) {
  if (kind == Reranker::none) return {};
  if (kind == Reranker::yes_or_no) QSF_TRY(take_answers(folder, model));
  if (!model.tokenizer || std::ranges::any_of(model.chat, [](const auto& kept) { return kept.first == kTemplate; })) {
    return {};
  }
  if (model.recipe->name == "qwen3") {
    model.chat.emplace_back(kTemplate, kYesOrNo);
    return {};
  }
  const TokenizerSource& tokenizer = *model.tokenizer;
  const auto text_of = [&](std::optional<std::uint32_t> id, std::uint32_t other) {
    const std::uint32_t token = id.value_or(other);
    return token < tokenizer.tokens.size() ? tokenizer.tokens[token].text : std::string();
  };
  const std::string begin = text_of(tokenizer.bos, model.config.bos), end = text_of(tokenizer.eos, model.config.eos);
  if (begin.empty() || end.empty()) {
    model.warnings.push_back("the tokenizer names no tokens around a pair of texts: the file will only take token ids");
    return {};
  }
  // RoBERTa's models, which are BERT's in GGUF, have two tokens between the texts.
  const std::string& name = model.recipe->name;
  const bool twice =
      name == "roberta" || name == "xlm-roberta" || (name == "bert" && tokenizer.kind != TokenizerKind::wordpiece);
  model.chat.emplace_back(kTemplate, begin + "{query}" + end + (twice ? end : "") + "{document}" + end);
  return {};
}

}  // namespace qsf::convert
