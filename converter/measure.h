// What rounding a tensor costs, from what enters its product: second moments of the columns, factored for the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "converter/decoded.h"
#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// Second moments of the columns of one tensor's input, as blocks of `width` columns: observed_width of them, or 1
/// where only the columns' own are known.
struct Moments {
  std::uint32_t cols = 0, width = 1;
  double n = 0;                                    // positions that were summed up
  std::shared_ptr<const std::vector<float>> sums;  // of x[i] * x[j], as Observed has them; of one input shared
  double of(std::uint32_t i, std::uint32_t j) const;
};

/// By section and role of the file's tensors.
using Calibration = std::map<std::pair<std::uint32_t, Role>, Moments>;

/// The cost of errors in a row of weights: e H e^T with H the moments, drawn towards their diagonal by how few
/// positions they were taken from. Without moments the sum of squares.
class RowCost {
 public:
  static RowCost plain(std::uint32_t cols);
  static RowCost of(const Moments& moments);

  std::uint32_t cols() const { return cols_; }
  /// Of one row's errors.
  double operator()(std::span<const float> errors) const;
  /// Whole rows of weights in a quantized format, so that errors cost little; never more than by quantize_row. A few
  /// rows together take less time than one after the other, and become the same.
  void quantize(const Format& f, std::span<const float> weights, std::span<std::byte> out) const;
  /// The same in a type that is no format and can be written; rows of whole blocks.
  void encode(const StoredType& type, std::span<const float> weights, std::span<std::byte> out) const;

 private:
  struct Row;
  void round(const Format& f, Row& row) const;
  std::vector<Row> rows_of(std::size_t row_size, std::span<const float> weights, std::span<std::byte> out) const;
  template <class Blocks>
  void search(const Blocks& coder, std::span<Row> rows) const;
  void improve(const Format& f, std::span<Row> rows) const;
  void take_rounded(const Format& f, std::span<Row> rows) const;
  double of(std::uint32_t i, std::span<const float> errors) const;  // column i's share
  bool carries() const { return !carry_.empty(); }
  const float* carry(std::uint32_t i) const { return &carry_[std::size_t{i} * stride_]; }
  const float* moments(std::uint32_t i) const { return &moments_[std::size_t{i} * stride_]; }

  std::uint32_t cols_ = 0, width_ = 0;
  bool plain_ = false;
  std::size_t stride_ = 0;
  std::vector<float> cost_;     // [cols_, padded to a block]
  std::vector<float> carry_;    // [cols_ padded, stride_]: row i from the first column of its block of width_
  std::vector<float> moments_;  // the same of H itself, symmetric
};

}  // namespace qsf::convert
