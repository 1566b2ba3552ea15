// The rows of a table that were used last, as floats: of the embedding while its segments are streamed.
#pragma once

#include <cstdint>
#include <span>

#include "base/arena.h"

namespace qsf {

class RowCache {
 public:
  /// Takes memory for `rows` rows of `dim` values. Fails with out_of_memory.
  Status init(Arena& arena, std::uint32_t rows, std::uint32_t dim);
  /// Copies the row of a token, or returns false if it is not there.
  bool get(std::uint32_t token, float* to);
  /// Replaces the row whose last use is longest ago.
  void put(std::uint32_t token, const float* row);

 private:
  struct Row {
    std::uint32_t token;  // 1 + id, 0 for none
    std::uint32_t used;   // the look-up of the last use
  };
  std::span<float> data_;  // [rows, stride_]
  std::span<Row> rows_;
  std::uint32_t stride_ = 0, dim_ = 0, lookups_ = 0;
};

}  // namespace qsf
