// The conversion of a loaded model to a file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converter/files/output_file.h"
#include "converter/model/model_source.h"
#include "converter/plan/plan.h"
#include "converter/plan/type_notes.h"
#include "converter/write/gguf/write.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

struct Summary {
  std::uint64_t file_bytes = 0;
  std::uint64_t weights = 0;      // number, norms and biases included
  std::uint64_t weight_bits = 0;  // size of their data before compression, padding included
};

/// A conversion in progress. Until it is done, an earlier file at the output's path does not change; an abandoned one
/// leaves no file.
class Conversion {
 public:
  enum class Step : std::uint8_t { working, done };

  /// Plans the file and creates the output. `model` must outlive the conversion. Returns the errors of plan_file,
  /// bad_argument if `path` is one of the model's files, and for GGUF the errors of GgufWriter::plan.
  static Result<Conversion> begin(const LoadedModel& model, const Options& options, const std::string& path);

  /// Writes about one segment, or does the last work: the tables, the flush to the disk, the output's name. Returns
  /// file_changed if one of the model's files changed. Must not be called after an error or done.
  Result<Step> step();

  FileWriter::Progress progress() const;
  /// Complete when done.
  const Summary& summary() const { return summary_; }
  /// Returns sentences on types that change, and on data of the model that the output cannot store and does not need.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  using Writer = std::variant<FileWriter, GgufWriter>;
  Conversion(const LoadedModel& model, std::unique_ptr<std::optional<OutputFile>> file, Writer writer,
             const Summary& summary);

  const LoadedModel* model_;
  std::unique_ptr<std::optional<OutputFile>> file_;  // the sink points to it
  Writer writer_;
  Summary summary_;
  std::vector<std::string> warnings_;
  bool flushed_ = false;
};

}  // namespace qsf::convert
