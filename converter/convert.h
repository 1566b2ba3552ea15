// A model as its source has it to a QSF file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converter/gguf_write.h"
#include "converter/measure.h"
#include "converter/model_source.h"
#include "converter/output_file.h"
#include "qsf/base/result.h"
#include "qsf/base/workers.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

struct Options {
  std::optional<FormatId> matrices;  // empty: the source's own where it has quantized types, else kDefaultFormat
  Compression compression = Compression::none;
  std::uint32_t segment_bytes = 0;                                // 0: chosen from the model's size
  std::map<std::pair<std::uint32_t, Role>, FormatId> types = {};  // of single tensors, by section and role
  std::uint32_t least_saved = 0;       // percent of a segment that compressing must save, or it is stored as it is
  bool gguf = false;                   // a GGUF file: formats that it has, in whole blocks, and norms in f32
  bool search = false;                 // scales and codes by what errors cost, not weight by weight
  std::vector<float> importance = {};  // of each layer, see LayerEntry; empty: not measured
  const Calibration* calibration = nullptr;  // what they cost; without it, and where it has nothing, their squares
  Workers workers = {};                      // lent threads; what is written does not depend on them
};

inline constexpr FormatId kDefaultFormat = FormatId::q8, kDefaultGgmlFormat = ggml_type(8);

/// Matrices that say which experts are read: they are never rounded, or another expert could be chosen.
constexpr bool is_router(Role role) { return role == Role::router || role == Role::shared_router; }

/// What is to be written. `model` must outlive it. Matrices get the format that `options` says, norms and biases stay
/// f32 (f16 where the source has f16). bad_input when tensors are missing, doubled or of another shape than the sizes
/// say, unsupported for tensors that no recipe knows; else the errors that the engine would give for the file.
Result<FileSource> plan_file(const ModelSource& model, const Options& options);

/// What every layer of that file is, with at least one kind, also where the file needs no table.
Result<LayerTableSource> layers_of_file(const ModelSource& model);

struct Summary {
  std::uint64_t file_bytes = 0;
  std::uint64_t weights = 0;      // how many, norms and biases included
  std::uint64_t weight_bits = 0;  // of their data before compression, as stored: with padding
};

/// A conversion that is under way. Until it is done, an earlier file at the output's path is as it was; one that is
/// given up leaves nothing behind.
class Conversion {
 public:
  enum class Step : std::uint8_t { working, done };

  /// plan_file, and a place for the output. `model` must outlive it. bad_argument when `path` is one of the model's
  /// files; of GGUF also what GgufWriter::plan gives.
  static Result<Conversion> begin(const ModelSource& model, const Options& options, const std::string& path);

  /// About one segment, or the last things: the tables, the flush to the disk, the output's name. file_changed when one
  /// of the model's files did. Not to be called after an error or done.
  Result<Step> step();

  FileWriter::Progress progress() const;
  /// Whole when done.
  const Summary& summary() const { return summary_; }
  /// What the output cannot say and the model does not need.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  using Writer = std::variant<FileWriter, GgufWriter>;
  Conversion(const ModelSource& model, std::unique_ptr<std::optional<OutputFile>> file, Writer writer,
             const Summary& summary);

  const ModelSource* model_;
  std::unique_ptr<std::optional<OutputFile>> file_;  // the sink points to it
  Writer writer_;
  Summary summary_;
  std::vector<std::string> warnings_;
  bool flushed_ = false;
};

}  // namespace qsf::convert
