#include "converter/readers/hugging_face/hugging_face.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "converter/readers/chat_template.h"
#include "converter/readers/hugging_face/packed.h"
#include "converter/readers/hugging_face/pytorch.h"
#include "converter/readers/hugging_face/safetensors.h"
#include "converter/readers/hugging_face/sentence_transformers.h"
#include "converter/readers/hugging_face/text_part.h"
#include "converter/readers/reranker.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/try.h"
#include "system/file.h"

namespace qsf::convert {
namespace {

/// A type of file with weights: one file, or several that an index names.
struct WeightFiles {
  const char* kind;
  const char* whole;
  const char* index;
  Status (*read)(const Input& file, std::vector<LoadedTensor>& out);
};
/// The first that exists is used.
constexpr std::array kWeightFiles{
    WeightFiles{"safetensors", "model.safetensors", "model.safetensors.index.json", read_safetensors},
    WeightFiles{"PyTorch", "pytorch_model.bin", "pytorch_model.bin.index.json", read_pytorch},
};

/// Adds the tensors of several files. "weight_map" has the file of each tensor.
Status add_shards(const InputFolder& folder, const WeightFiles& files, const Json& index, LoadedModel& out) {
  const Json* map = find(index, "weight_map");
  if (!map || !map->is_object()) {
    return make_error(ErrorCode::bad_input, "{}: \"weight_map\" is missing or no object", files.index);
  }
  std::map<std::string, std::set<std::string>> names_by_file;
  std::map<std::string, std::string> file_of;  // by the tensor's name
  for (const auto& [name, value] : map->items()) {
    const std::string* file = as_text(value);
    if (!file || !sys::is_single_name(*file)) {
      return make_error(ErrorCode::bad_input, "{}: the file of {:.80} is not a file name", files.index, name);
    }
    names_by_file[*file].insert(name);
    file_of.emplace(name, *file);
  }
  for (const auto& [file, names] : names_by_file) {
    std::vector<LoadedTensor> tensors;
    QSF_LET(input, folder.find(file));
    if (!input) return make_error(ErrorCode::io_error, "{} names {:.80}, which is not there", files.index, file);
    QSF_TRY(files.read(*input, tensors));
    std::size_t n_found = 0;
    for (LoadedTensor& tensor : tensors) {
      if (!names.contains(tensor.name)) {
        // One that no file is named for is not of the model.
        const auto other = file_of.find(tensor.name);
        if (other == file_of.end()) continue;
        return make_error(ErrorCode::bad_input, "tensor {:.80} is in {:.80}, and also in {:.80}, which {} names for it",
                          tensor.name, file, other->second, files.index);
      }
      ++n_found;
      out.tensors.push_back(std::move(tensor));
    }
    if (n_found == names.size()) continue;
    for (const std::string& name : names) {
      const auto same = [&](const LoadedTensor& t) { return t.name == name; };
      if (std::none_of(out.tensors.begin(), out.tensors.end(), same)) {
        return make_error(ErrorCode::bad_input, "{:.80} does not hold {:.80}, though {} says so", file, name,
                          files.index);
      }
    }
  }
  return {};
}

/// Adds the common prefix to the names of a model whose body was saved alone, without that prefix.
void name_body(LoadedModel& model) {
  constexpr std::string_view kBody = "model.";
  const std::string embedding = name_of(*model.recipe, model.naming, Role::token_embd, 0);
  const auto is_there = [&](std::string_view name) {
    return std::ranges::any_of(model.tensors, [&](const LoadedTensor& tensor) { return tensor.name == name; });
  };
  if (!embedding.starts_with(kBody) || is_there(embedding)) return;
  if (!is_there(std::string_view(embedding).substr(kBody.size()))) return;
  for (LoadedTensor& tensor : model.tensors) tensor.name.insert(0, kBody);
}

}  // namespace

Status add_weights(const InputFolder& folder, LoadedModel& out) {
  for (const WeightFiles& files : kWeightFiles) {
    out.kind = files.kind;
    QSF_LET(whole, folder.find(files.whole));
    if (whole) return files.read(*whole, out.tensors);
    QSF_LET(index, read_json(folder, files.index));
    if (!index.is_null()) return add_shards(folder, files, index, out);
  }
  return make_error(ErrorCode::bad_input, "there is neither {} nor {} nor an index of either in {:.120}",
                    kWeightFiles[0].whole, kWeightFiles[1].whole, folder.name);
}

bool is_hugging_face(const ModelLocation& place) { return !place.file; }

Result<LoadedModel> open_hugging_face(const ModelLocation& place, bool with_tokenizer) {
  LoadedModel out;
  QSF_LET(whole, read_json(place.folder, "config.json"));
  if (whole.is_null()) {
    return make_error(ErrorCode::bad_input, "there is no config.json in {:.120}: is it a Hugging Face model directory?",
                      place.folder.name);
  }
  const Json config = text_part(whole);
  QSF_LET(generation, read_json(place.folder, "generation_config.json"));
  out.recipe = place.recipe;
  QSF_TRY(read_config(config, generation, out));
  out.config.name = place.name;
  QSF_TRY(add_weights(place.folder, out));
  if (find(whole, "text_config")) take_text_tensors(out);
  for (LoadedTensor& tensor : out.tensors) {
    for (const std::string& prefix : out.recipe->prefixes) {
      if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
    }
  }
  for (const LoadedTensor& tensor : out.tensors) {
    if (tensor.name != out.recipe->size("ffn_dim").rows_of) continue;
    if (const auto shape = matrix_shape(tensor.shape)) out.config.ffn_dim = (*shape)[0];
  }
  take_guess_layer(out);
  QSF_TRY(join_packed(config, out));
  name_body(out);
  QSF_LET(reranker, read_reranker(place, config, out));
  if (reranker == Reranker::none) QSF_TRY(read_sentence_transformers(place.folder, out));
  QSF_LET(tokenizer, read_json(place.folder, "tokenizer_config.json"));
  if (with_tokenizer) QSF_TRY(read_tokenizer_of_folder(place.folder, tokenizer, out));
  QSF_TRY(finish_reranker(reranker, place.folder, out));
  QSF_TRY(read_chat_template(place.folder, tokenizer, out));
  return out;
}

}  // namespace qsf::convert
