// Parts of a source's tensors: cut from a fused one, transposed, with one added.
#pragma once

#include <array>
#include <cstdint>

#include "converter/model_source.h"

namespace qsf::convert {

/// What of a tensor a recipe's line takes; a tensor that was turned already is not turned again.
inline TensorPart part_for(const SourceTensor& tensor, const TensorName& line, Naming naming) {
  TensorPart part = line.part_in(naming);
  part.transposed = part.transposed && !tensor.turned;
  return part;
}

/// Rows (of a vector: elements) [begin, end) of the source's tensor as stored, or turned where the part is transposed;
/// or those of each group of `every` rows.
struct RowRange {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t every = 0, n_groups = 1;

  std::uint64_t count() const { return (end - begin) * n_groups; }
  /// Where the part's row `r` lies in the source.
  std::uint64_t source(std::uint64_t r) const {
    const std::uint64_t group = end - begin;
    return r / group * every + begin + r % group;
  }
};
/// All of them where the part names none. bad_input, naming the tensor, when it has not so many or is no matrix.
Result<RowRange> rows_of_part(const SourceTensor& tensor, const TensorPart& part, const Header& header,
                              const LayerKind& kind);

/// The part as a tensor of its own: in the source's format where whole rows are taken as they are, else f32. `range`
/// is that of rows_of_part(). `tensor` must outlive the result.
SourceTensor part_of(const SourceTensor& tensor, const TensorPart& part, const RowRange& range);

}  // namespace qsf::convert
