#include "converter/hugging_face.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "converter/safetensors.h"
#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

namespace fs = std::filesystem;

Status add_file(const fs::path& path, ModelSource& out, std::vector<SourceTensor>& tensors) {
  Result<MappedFile> file = MappedFile::open(path.string());
  if (!file) return file.error();
  out.files.push_back(std::move(*file));
  return read_safetensors(out.files.back().bytes(), path.filename().string(), tensors);
}

/// model.safetensors.index.json: "weight_map" says in which file each tensor is.
Status add_shards(const fs::path& directory, const Json& index, ModelSource& out) {
  const Json* map = find(index, "weight_map");
  if (!map || !map->is_object()) {
    return make_error(ErrorCode::bad_input, "model.safetensors.index.json: \"weight_map\" is missing or no object");
  }
  std::map<std::string, std::set<std::string>> names_by_file;
  for (const auto& [name, value] : map->items()) {
    const std::string* file = as_text(value);
    if (!file || file->empty() || *file != fs::path(*file).filename().string()) {
      return make_error(ErrorCode::bad_input, "model.safetensors.index.json: the file of {:.80} is not a file name",
                        name);
    }
    names_by_file[*file].insert(name);
  }
  for (const auto& [file, names] : names_by_file) {
    std::vector<SourceTensor> tensors;
    QSF_TRY(add_file(directory / file, out, tensors));
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
        return make_error(ErrorCode::bad_input, "{} does not hold {:.80}, though model.safetensors.index.json says so",
                          file, name);
      }
    }
  }
  return {};
}

Status add_weights(const fs::path& directory, ModelSource& out) {
  if (is_file(directory / "model.safetensors")) return add_file(directory / "model.safetensors", out, out.tensors);
  const Result<Json> index = read_json_file(directory / "model.safetensors.index.json");
  if (!index) return index.error();
  if (!index->is_null()) return add_shards(directory, *index, out);
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (is_file(directory / pickle)) {
      return make_error(ErrorCode::unsupported, "the weights are in {}: only safetensors can be read", pickle);
    }
  }
  return make_error(ErrorCode::bad_input, "there is neither model.safetensors nor model.safetensors.index.json in {}",
                    directory.string());
}

}  // namespace

bool is_hugging_face(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

Result<ModelSource> open_hugging_face(const std::string& path, bool with_tokenizer) {
  const fs::path directory(path);
  ModelSource out;
  out.kind = "safetensors";
  const Result<Json> config = read_json_file(directory / "config.json");
  if (!config) return config.error();
  if (config->is_null()) {
    return make_error(ErrorCode::bad_input, "there is no config.json in {}: is it a Hugging Face model directory?",
                      path);
  }
  const Result<Json> generation = read_json_file(directory / "generation_config.json");
  if (!generation) return generation.error();
  QSF_TRY(read_config(*config, *generation, out));
  std::error_code error;
  out.config.name = fs::weakly_canonical(directory, error).filename().string();
  QSF_TRY(add_weights(directory, out));
  if (with_tokenizer) {
    QSF_TRY(read_tokenizer_of_directory(path, out));
  }
  return out;
}

}  // namespace qsf::convert
