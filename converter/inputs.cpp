#include "converter/inputs.h"

#include <filesystem>

#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {

Result<ModelSource> open_place(const ModelPlace& place, bool with_tokenizer) {
  for (const InputKind& kind : kInputKinds) {
    if (kind.recognise(place)) return kind.open(place, with_tokenizer);
  }
  return make_error(
      ErrorCode::unsupported,
      "{:.80} is of no kind that can be read: a Hugging Face directory, GGUF, or a whole llama2.c checkpoint",
      place.file ? place.file->name : place.name);
}

Result<ModelSource> open_model(const std::string& path, bool with_tokenizer) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return make_error(ErrorCode::io_error, "there is no file or directory {:.160}", path);
  }
  const auto files = std::make_shared<LocalFiles>();
  QSF_LET(place, local_place(path, files));
  QSF_LET(model, open_place(place, with_tokenizer));
  model.files = files;
  return std::move(model);
}

Status read_tokenizer_file(const std::string& path, ModelSource& model) {
  if (!model.files) model.files = std::make_shared<LocalFiles>();
  QSF_LET(file, model.files->open(path));
  return read_tokenizer(file, model);
}

}  // namespace qsf::convert
