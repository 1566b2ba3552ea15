// Parts of a source's tensors: cut from a fused one, transposed, or with changed numbers.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "converter/model/model_source.h"

namespace qsf::convert {

/// Returns the part of a tensor that a recipe's line takes. A tensor that is already transposed is not transposed
/// again.
inline TensorPart part_for(const LoadedTensor& tensor, const TensorName& line, Naming naming) {
  TensorPart part = line.part_in(naming);
  part.transposed = part.transposed && !tensor.turned;
  return part;
}

/// Rows (or elements of a vector) [begin, end) of the source's tensor as stored, or transposed if the part is; with
/// `every`, of each group of so many.
struct RowRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t every = 0, n_groups = 1;

  std::uint64_t count() const { return (end - begin) * n_groups; }
  /// Returns the row in the source of the part's row `r`.
  std::uint64_t source(std::uint64_t r) const {
    const std::uint64_t group = end - begin;
    return r / group * every + begin + r % group;
  }
};
/// Returns the part's rows, all if it names none. Returns bad_input, with the tensor's name, if the tensor has fewer
/// rows or is not a matrix.
Result<RowRange> rows_of_part(const LoadedTensor& tensor, const TensorPart& part, const Header& header,
                              const LayerKind& kind);

/// Rows of one transposed tensor, kept until others are read, because each takes a pass over the whole tensor. All
/// tensors that share a window keep the rows of one of them at a time.
struct TurnedWindow {
  std::shared_ptr<const void> owner;
  std::uint32_t begin = 0, n = 0;  // of its rows
  std::vector<float> values;
};

/// Returns the part as a tensor of its own: in the source's format if it consists of whole rows that do not change,
/// otherwise f32. `range` is the result of rows_of_part(). `tensor` must outlive the result. Rows of a transposed part
/// pass through the window.
LoadedTensor part_of(const LoadedTensor& tensor, const TensorPart& part, const RowRange& range,
                     const std::shared_ptr<TurnedWindow>& window);

}  // namespace qsf::convert
