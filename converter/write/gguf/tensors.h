// The file's tensors in GGUF's form: under the recipe's names, fused if the recipe fuses them, rows in GGUF's order.
#pragma once

#include <string>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/tensors/rows.h"
#include "qsf/file/writer.h"

namespace qsf::convert {

struct GgufTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost first
  FormatId format = FormatId::f32;
  std::uint32_t rows = 0, cols = 0;  // of all parts
  struct Part {
    const TensorSpec* tensor = nullptr;
    RotatedHeads heads;  // heads that RoPE rotates over neighbouring pairs in GGUF
  };
  std::vector<Part> parts;  // one after the other
  /// The scale of the tensor, or of each expert, if the parts are nvfp4_f32. Another tensor has them, of this name.
  std::vector<float> scales = {};
  std::string scales_name = {};

  /// Reads rows [begin, begin + n) of one part in GGUF's order. Returns unsupported if a block has another scale than
  /// `scales` has.
  Status read_rows(std::size_t part, std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) const;

 private:
  /// The same, in the format of the parts.
  Status read_stored(std::size_t part, FormatId stored, std::uint32_t begin, std::uint32_t n,
                     std::span<std::byte> out) const;
};

/// Returns the tensors, or unsupported if the recipe has no GGUF name for a tensor, or takes it from GGUF in a way that
/// cannot be undone, or llama.cpp reads no scales of one that has them. Reads a row of each matrix that has scales, or
/// of each of its experts. `file` must outlive the result.
Result<std::vector<GgufTensor>> gguf_tensors(const Recipe& recipe, const FileSpec& file,
                                             const LayerTableBuilder& layers);

}  // namespace qsf::convert
