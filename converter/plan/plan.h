// The specification of a file, made from a loaded model and the options of a conversion.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/rounding/measure.h"
#include "qsf/base/result.h"
#include "qsf/base/workers.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

class TypeNotes;

struct Options {
  std::optional<FormatId> matrices;  // empty: the source's own formats if it is quantized, otherwise kDefaultFormat
  Compression compression = Compression::none;
  std::uint32_t segment_bytes = 0;                                // 0: chosen from the model's size
  std::map<std::pair<std::uint32_t, Role>, FormatId> types = {};  // of single tensors, by stage and role
  std::uint32_t least_saved = 0;  // percent that compression must save of a segment, or it is stored raw
  bool gguf = false;              // a GGUF file: formats of GGUF, in whole blocks, and norms in f32
  std::optional<std::uint32_t> gguf_file_type = {};  // llama.cpp's number; empty: that of the most common type
  bool search = false;                       // choose scales and codes by the cost of errors, not weight by weight
  std::vector<float> importance = {};        // of each layer, see LayerEntry; empty: not measured
  const Calibration* calibration = nullptr;  // the cost of errors, if known; otherwise their squares
  Workers workers = {};                      // lent threads; the output does not depend on them
};

inline constexpr FormatId kDefaultFormat = FormatId::q8, kDefaultGgmlFormat = ggml_type(8);

/// Returns whether a matrix selects experts. It is never rounded, because another expert could be selected.
constexpr bool is_router(Role role) { return role == Role::router || role == Role::shared_router; }

/// Returns the specification of the file. `model` must outlive it. Matrices get the format of `options`; norms and
/// biases stay f32, or f16 if the source has f16. Returns bad_input if tensors are missing, doubled or of a shape that
/// the sizes contradict, unsupported for tensors that no recipe knows, otherwise the engine's errors for the file. Adds
/// every matrix to `notes`, which may be null.
Result<FileSpec> plan_file(const LoadedModel& model, const Options& options, TypeNotes* notes = nullptr);

/// Returns the kind of every layer of that file: at least one kind, even if the file needs no table.
Result<LayerTableBuilder> layers_of_file(const LoadedModel& model);

}  // namespace qsf::convert
