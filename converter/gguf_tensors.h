// The file's tensors as GGUF has them: under the recipe's names, fused where it fuses, rows in its order.
#pragma once

#include <string>
#include <vector>

#include "converter/model_source.h"
#include "converter/rows.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost first
  FormatId format = FormatId::f32;
  std::uint32_t rows = 0, cols = 0;  // all of its parts'
  struct Part {
    const TensorSource* tensor = nullptr;
    RotatedHeads heads;  // that RoPE turns over neighbouring pairs there
  };
  std::vector<Part> parts;  // one behind the other

  /// Rows [begin, begin + n) of one part, which are what read_rows() of that part's order gives.
  Status read_rows(std::size_t part, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) const;
};

/// unsupported where the recipe has no name for a tensor in GGUF, or takes it there in a way that cannot be undone.
/// `file` must outlive the result.
Result<std::vector<GgufTensor>> gguf_tensors(const Recipe& recipe, const FileSource& file,
                                             const LayerTableSource& layers);

}  // namespace qsf::convert
