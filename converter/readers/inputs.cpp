#include "converter/readers/inputs.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "converter/recipes/recipe_json.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"
#include "system/file.h"

namespace qsf::convert {

namespace {

/// Checks that begin and end tokens exist. A padding token that does not exist is left out with a warning, because
/// nothing here uses it.
Status check_tokens(LoadedModel& model) {
  ModelConfig& c = model.config;
  const auto exists = [&](std::uint32_t id) { return id == kNoToken || id < c.vocab_size; };
  const auto missing = [&](const char* what, std::uint32_t id) {
    return make_error(ErrorCode::bad_input, "the {} token is {}, but the vocabulary has {} tokens", what, id,
                      c.vocab_size);
  };
  if (!exists(c.bos)) return missing("begin", c.bos);
  if (!exists(c.eos)) return missing("end", c.eos);
  for (const std::uint32_t id : c.all_eos) {
    if (!exists(id)) return missing("end", id);
  }
  if (exists(c.pad)) return {};
  model.warnings.push_back("the padding token is " + std::to_string(c.pad) + ", but the vocabulary has " +
                           std::to_string(c.vocab_size) + " tokens: it is left out");
  c.pad = kNoToken;
  return {};
}

/// Makes the model's name valid UTF-8, as metadata must be.
void make_name_valid(LoadedModel& model) {
  const std::string_view name = model.config.name;
  if (utf8::is_valid(name)) return;
  std::string valid;
  for (std::size_t at = 0; at < name.size();) {
    const utf8::Decoded next = utf8::decode(name, at);
    valid += next.form == utf8::Form::valid ? name.substr(at, next.size) : utf8::kReplacement;
    at += next.size;
  }
  model.config.name = std::move(valid);
  model.warnings.push_back("the model's name is not UTF-8: it is kept as \"" + model.config.name + "\"");
}

constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/";
constexpr std::uint64_t kMostOfPointer = 1024;  // bytes, as Git LFS has it

/// Returns bad_input for a pointer of Git LFS in place of a file.
Status check_fetched(const Input& file) {
  if (file.size < kPointer.size() || file.size > kMostOfPointer) return {};
  QSF_LET(head, read_head(file, kPointer.size()));
  if (!std::ranges::equal(head, std::as_bytes(std::span(kPointer)))) return {};
  return make_error(ErrorCode::bad_input, "{:.100} is a pointer of Git LFS: the file itself was not fetched",
                    file.name);
}

/// Returns the place with a folder that refuses pointers of Git LFS.
ModelLocation with_checked_files(ModelLocation place) {
  place.folder.find = [find = std::move(place.folder.find)](const std::string& name) -> Result<std::optional<Input>> {
    QSF_LET(file, find(name));
    if (file) QSF_TRY(check_fetched(*file));
    return std::move(file);
  };
  return place;
}

/// Returns the name of a file in a folder that is a model itself; empty if there is none.
std::string model_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(sys::path_of(folder), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = sys::text_of(at->path().filename());
    if (name.ends_with(".gguf") || name.ends_with(".qsf")) names.push_back(name);
  }
  return names.empty() ? "" : *std::ranges::min_element(names);
}

}  // namespace

Result<LoadedModel> open_place(const ModelLocation& given, bool with_tokenizer) {
  const ModelLocation place = with_checked_files(given);
  if (place.file) QSF_TRY(check_fetched(*place.file));
  for (const InputKind& kind : kInputKinds) {
    if (!kind.recognise(place)) continue;
    QSF_LET(model, kind.open(place, with_tokenizer));
    QSF_TRY(check_tokens(model));
    make_name_valid(model);
    return std::move(model);
  }
  QSF_LET(config, place.folder.find("config.json"));
  if (place.file && config) {
    return make_error(ErrorCode::unsupported, "{:.80} is a part of a model: name the folder that it is in, {:.160}",
                      place.file->name, place.folder.name.empty() ? "." : place.folder.name);
  }
  return make_error(ErrorCode::unsupported,
                    "{:.80} is of no kind that can be read: a Hugging Face directory, a GGUF or .qsf file, or a whole "
                    "checkpoint of llama2.c or one of its kin",
                    place.file ? place.file->name : place.name);
}

bool is_recognised(const ModelLocation& place) {
  return std::ranges::any_of(kInputKinds, [&](const InputKind& kind) { return kind.recognise(place); });
}

Result<LoadedModel> open_model(const std::string& path, bool with_tokenizer, const std::string& recipe,
                               TernaryLayout ternary, std::shared_ptr<LocalFiles> files) {
  std::error_code error;
  if (!std::filesystem::exists(sys::path_of(path), error)) {
    return make_error(ErrorCode::io_error, "there is no file or directory {:.160}", path);
  }
  QSF_LET(place, local_place(path, files));
  place.ternary = ternary;
  if (!recipe.empty()) {
    QSF_LET(read, read_recipe_file(recipe, *files));
    place.recipe = std::move(read);
  }
  if (!place.file) {
    QSF_LET(config, place.folder.find("config.json"));
    if (const std::string name = config ? "" : model_in(path); !name.empty()) {
      return make_error(ErrorCode::bad_input,
                        "there is no config.json in {:.120}: to read {:.100} there, name this file", path, name);
    }
  }
  QSF_LET(model, open_place(place, with_tokenizer));
  model.files = std::move(files);
  return std::move(model);
}

Result<std::shared_ptr<const Recipe>> read_recipe_file(const std::string& path, LocalFiles& files) {
  QSF_LET(file, files.open(path));
  QSF_LET(json, read_json(file, 0, file.size));
  QSF_LET(recipe, read_recipe(json, file.name));
  return std::make_shared<const Recipe>(std::move(recipe));
}

Status read_tokenizer_file(const std::string& path, LoadedModel& model) {
  if (!model.files) model.files = std::make_shared<LocalFiles>();
  QSF_LET(file, model.files->open(path));
  return read_tokenizer(file, model);
}

}  // namespace qsf::convert
