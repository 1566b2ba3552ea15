// The rows of one tensor, converted from the source's format and order to the file's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "converter/model/model_source.h"
#include "converter/rounding/measure.h"
#include "qsf/base/workers.h"

namespace qsf::convert {

/// Returns a head's width for roles whose rows RoPE rotates (queries, keys, their biases), 0 for all others.
std::uint32_t rotated_heads(Role role, const LayerKind& kind);

/// Returns the cost of errors in the rows of a tensor, or null if they are rounded weight by weight.
using CostOf = std::function<const RowCost*()>;

/// Memory for conversions, which keeps its size, so that a later conversion allocates nothing.
struct RowRoom {
  std::vector<std::byte> raw, read;
  std::vector<float> floats;
  std::vector<Status> done;
};
class RowRooms {
 public:
  /// Any thread. Returns a room that no other thread has.
  RowRoom take();
  void give(RowRoom room);

 private:
  std::mutex mutex_;
  std::vector<RowRoom> free_;
};

/// The cost, the threads and the memory that rows are converted with.
struct RowWork {
  CostOf cost_of = {};
  Workers workers = {};  // rows are divided among them; the bytes do not depend on them
  std::shared_ptr<RowRooms> rooms = std::make_shared<RowRooms>();
};

/// Rows that are converted, the check that copies of their runs need, and the order of copies.
struct ConvertedRows {
  RowsOf rows_of;
  std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<const std::byte> rows)> check;
  RotatedHeads heads;
};

/// Returns the rows of `tensor` in `target`. The same format is copied; any other is converted through floats.
/// `interleaved` undoes RoPE over neighbouring pairs: in every head, position 2i + j moves to j * rotated / 2 + i.
/// `target` must be a format. `tensor` must outlive the result. Reading returns bad_input, with
/// tensor and row, for weights, scales and minima that are not finite, and for weights that `target` cannot represent.
ConvertedRows rows_as(const LoadedTensor& tensor, FormatId target, std::uint32_t rows, std::uint32_t cols,
                      RotatedHeads interleaved, RowWork work = {});

}  // namespace qsf::convert
