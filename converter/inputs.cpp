#include "converter/inputs.h"

#include <filesystem>

namespace qsf::convert {

Result<ModelSource> open_model(const std::string& path, bool with_tokenizer) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return make_error(ErrorCode::io_error, "there is no file or directory {}", path);
  }
  for (const InputKind& kind : kInputKinds) {
    if (kind.recognise(path)) return kind.open(path, with_tokenizer);
  }
  // An unreadable file is recognised by nobody; say that rather than guess at its kind.
  if (const Result<MappedFile> file = MappedFile::open(path); !file) return file.error();
  return make_error(ErrorCode::unsupported,
                    "{} is of no kind that can be read: a Hugging Face directory, GGUF, or a whole llama2.c checkpoint",
                    path);
}

}  // namespace qsf::convert
