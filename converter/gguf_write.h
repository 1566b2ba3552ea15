// A model as a GGUF file, version 3.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "converter/model_source.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

/// Whether an output of that name is a GGUF file: by its ending, .gguf.
bool names_gguf(std::string_view path);

/// Writes piece by piece, as FileWriter does.
class GgufWriter {
 public:
  using Step = FileWriter::Step;
  using Progress = FileWriter::Progress;

  /// `file`: what plan_file gives for `model` as GGUF, which must outlive this. Nothing is written that would
  /// not be read back as the same model: unsupported, with what differs, where GGUF cannot say it. What a tokenizer's
  /// normalizer, further ends of texts and the last norm's epsilon lose goes to `warnings`.
  static Result<GgufWriter> plan(const ModelSource& model, FileSource file, FileSink sink,
                                 std::vector<std::string>& warnings);
  GgufWriter(GgufWriter&&) noexcept;
  ~GgufWriter();

  /// The front, or some rows. After an error or done it gives the same again.
  Result<Step> step();
  Progress progress() const;
  std::uint64_t file_size() const;

 private:
  struct Work;
  explicit GgufWriter(std::unique_ptr<Work> work);
  std::unique_ptr<Work> work_;
};

}  // namespace qsf::convert
