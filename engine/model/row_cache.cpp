#include "model/row_cache.h"

#include <algorithm>
#include <cstring>

#include "qsf/base/try.h"

namespace qsf {

Status RowCache::init(Arena& arena, std::uint32_t rows, std::uint32_t dim) {
  dim_ = dim;
  stride_ = static_cast<std::uint32_t>(align_up(dim * sizeof(float)) / sizeof(float));
  QSF_TRY(arena.take(data_, std::uint64_t{rows} * stride_, Region::embedding_rows));
  return arena.take(rows_, rows, Region::embedding_rows);
}

bool RowCache::get(std::uint32_t token, float* to) {
  const auto row = std::ranges::find(rows_, token + 1, &Row::token);
  if (row == rows_.end()) return false;
  std::memcpy(to, &data_[static_cast<std::size_t>(row - rows_.begin()) * stride_], dim_ * sizeof(float));
  row->used = ++lookups_;
  return true;
}

void RowCache::put(std::uint32_t token, const float* row) {
  if (rows_.empty()) return;
  const auto oldest = std::ranges::min_element(rows_, {}, &Row::used);
  *oldest = {token + 1, ++lookups_};
  std::memcpy(&data_[static_cast<std::size_t>(oldest - rows_.begin()) * stride_], row, dim_ * sizeof(float));
}

}  // namespace qsf
