#include "converter/hugging_face.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "converter/safetensors.h"
#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";

/// model.safetensors.index.json: "weight_map" says in which file each tensor is.
Status add_shards(const InputFolder& folder, const Json& index, ModelSource& out) {
  const Json* map = find(index, "weight_map");
  if (!map || !map->is_object()) {
    return make_error(ErrorCode::bad_input, "{}: \"weight_map\" is missing or no object", kIndex);
  }
  std::map<std::string, std::set<std::string>> names_by_file;
  for (const auto& [name, value] : map->items()) {
    const std::string* file = as_text(value);
    if (!file || file->empty() || file->find('/') != std::string::npos || *file == "." || *file == "..") {
      return make_error(ErrorCode::bad_input, "{}: the file of {:.80} is not a file name", kIndex, name);
    }
    names_by_file[*file].insert(name);
  }
  for (const auto& [file, names] : names_by_file) {
    std::vector<SourceTensor> tensors;
    QSF_LET(input, folder.find(file));
    if (!input) return make_error(ErrorCode::io_error, "{} names {:.80}, which is not there", kIndex, file);
    QSF_TRY(read_safetensors(*input, tensors));
    std::size_t n_found = 0;
    for (SourceTensor& tensor : tensors) {
      if (!names.contains(tensor.name)) continue;
      ++n_found;
      out.tensors.push_back(std::move(tensor));
    }
    if (n_found == names.size()) continue;
    for (const std::string& name : names) {
      const auto same = [&](const SourceTensor& t) { return t.name == name; };
      if (std::none_of(out.tensors.begin(), out.tensors.end(), same)) {
        return make_error(ErrorCode::bad_input, "{:.80} does not hold {:.80}, though {} says so", file, name, kIndex);
      }
    }
  }
  return {};
}

Status add_weights(const InputFolder& folder, ModelSource& out) {
  QSF_LET(whole, folder.find("model.safetensors"));
  if (whole) return read_safetensors(*whole, out.tensors);
  QSF_LET(index, read_json(folder, std::string(kIndex)));
  if (!index.is_null()) return add_shards(folder, index, out);
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    QSF_LET(found, folder.find(pickle));
    if (found) {
      return make_error(ErrorCode::unsupported, "the weights are in {}: only safetensors can be read", pickle);
    }
  }
  return make_error(ErrorCode::bad_input, "there is neither model.safetensors nor {} in {:.120}", kIndex, folder.name);
}

}  // namespace

bool is_hugging_face(const ModelPlace& place) { return !place.file; }

Result<ModelSource> open_hugging_face(const ModelPlace& place, bool with_tokenizer) {
  ModelSource out;
  out.kind = "safetensors";
  QSF_LET(config, read_json(place.folder, "config.json"));
  if (config.is_null()) {
    return make_error(ErrorCode::bad_input, "there is no config.json in {:.120}: is it a Hugging Face model directory?",
                      place.folder.name);
  }
  QSF_LET(generation, read_json(place.folder, "generation_config.json"));
  out.recipe = place.recipe;
  QSF_TRY(read_config(config, generation, out));
  out.config.name = place.name;
  QSF_TRY(add_weights(place.folder, out));
  for (SourceTensor& tensor : out.tensors) {
    for (const std::string& prefix : out.recipe->prefixes) {
      if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
    }
  }
  if (with_tokenizer) QSF_TRY(read_tokenizer_of_folder(place.folder, out));
  return out;
}

}  // namespace qsf::convert
