// The cost of a rounded tensor, computed from its inputs: second moments of the columns, factored for the search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/file/layout.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

/// Second moments of the columns of one tensor's input, in blocks of `width` columns. The width is observed_width of
/// the columns, or 1 if only the squares of single columns are known.
struct Moments {
  std::uint32_t cols = 0, width = 1;
  double n = 0;                                    // number of summed positions
  std::shared_ptr<const std::vector<float>> sums;  // of x[i] * x[j], as in Observed; shared by tensors of one input
  double of(std::uint32_t i, std::uint32_t j) const;
};

/// Moments by stage and role of the file's tensors.
using Calibration = std::map<std::pair<std::uint32_t, Role>, Moments>;

/// The cost of errors in a row of weights: e H e^T. H is the moments, shrunk towards their diagonal more for fewer
/// positions. Without moments the cost is the sum of squares.
class RowCost {
 public:
  static RowCost plain(std::uint32_t cols);
  static RowCost of(const Moments& moments);

  std::uint32_t cols() const { return cols_; }
  /// Returns the cost of one row's errors.
  double operator()(std::span<const float> errors) const;
  /// Rounds whole rows of weights to a quantized format with low cost, never higher than that of quantize_row. A few
  /// rows at once take less time than one by one, and get the same bytes.
  void quantize(const Format& f, std::span<const float> weights, std::span<std::byte> out) const;

 private:
  struct Row;
  void round(const Format& f, Row& row) const;
  std::vector<Row> rows_of(std::size_t row_size, std::span<const float> weights, std::span<std::byte> out) const;
  void search(const Format& f, std::span<Row> rows) const;
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
  std::vector<float> moments_;  // [cols_ padded, stride_]: H itself, symmetric
};

}  // namespace qsf::convert
