// A model as its source has it to a QSF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "converter/model_source.h"
#include "qsf/base/result.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

struct Options {
  std::optional<FormatId> matrices;  // empty: the source's own where it has quantized types, else kDefaultFormat
  Compression compression = Compression::none;
  std::uint32_t segment_bytes = 0;  // 0: chosen from the model's size
};

inline constexpr FormatId kDefaultFormat = FormatId::q8;

/// What is to be written. `model` must outlive it. Matrices get the format that `options` says, norms and biases stay
/// f32 (f16 where the source has f16). bad_input when tensors are missing, doubled or of another shape than the sizes
/// say, unsupported for tensors that no recipe knows.
Result<FileSource> plan_file(const ModelSource& model, const Options& options);

struct Summary {
  std::uint64_t file_bytes = 0;
  std::uint64_t weights = 0;      // how many, norms and biases included
  std::uint64_t weight_bits = 0;  // of their data before compression, as stored: with padding
};

/// plan_file, then writes to `path` by way of `path`.tmp: on failure an earlier file at `path` is as it was.
Result<Summary> convert_file(const ModelSource& model, const Options& options, const std::string& path,
                             const WriteProgress& progress);

}  // namespace qsf::convert
