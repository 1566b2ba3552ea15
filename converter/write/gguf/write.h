// A model as a GGUF file, version 3.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converter/model/model_source.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

/// Returns whether an output of that name is a GGUF file: it ends in .gguf, in any case.
bool names_gguf(std::string_view path);

/// Reads a GGUF file as a model. It is passed in because writers do not know the reader.
using ReadGguf = Result<LoadedModel> (*)(const ModelLocation& place, bool with_tokenizer);

/// Writes a GGUF file piece by piece, as FileWriter does.
class GgufWriter {
 public:
  using Step = FileWriter::Step;
  using Progress = FileWriter::Progress;

  /// Plans the file. `file` is the result of plan_file for `model` as GGUF; `model` must outlive the writer. `read`
  /// reads the front back. Returns unsupported, with the difference, if the file would not be read as the same model.
  /// Losses in a tokenizer's normalizer, further ends of texts and the last norm's epsilon go to `warnings`.
  /// `file_type` is llama.cpp's number of such files; empty: the number of the type that most weights have.
  static Result<GgufWriter> plan(const LoadedModel& model, FileSpec file, FileSink sink,
                                 std::optional<std::uint32_t> file_type, std::vector<std::string>& warnings,
                                 ReadGguf read);
  GgufWriter(GgufWriter&&) noexcept;
  ~GgufWriter();

  /// Writes the front, or some rows. After an error or done, returns the same again.
  Result<Step> step();
  Progress progress() const;
  std::uint64_t file_size() const;

 private:
  struct Work;
  explicit GgufWriter(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace qsf::convert
