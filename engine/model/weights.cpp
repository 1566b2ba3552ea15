#include "model/weights.h"

#include <algorithm>

#include "qsf/base/try.h"

namespace qsf {

Status Weights::init(Arena& arena, const FileTables& tables) {
  tables_ = tables;
  if (tables.tensors.size() >= 0xffff) {
    return make_error(ErrorCode::bad_section, "the tensor table has {} entries, more than 65534",
                      tables.tensors.size());
  }
  const std::size_t n_stages = n_weight_stages(tables.header);
  QSF_TRY(arena.take(index_, n_stages * kRoles, Region::tables));
  QSF_TRY(arena.take(vectors_, n_stages, Region::tables));
  if (arena.is_dry()) return {};
  for (std::size_t i = 0; i < tables.tensors.size(); ++i) {
    const TensorEntry& t = tables.tensors[i];
    index_[t.stage * kRoles + role_index(t.role)] = static_cast<std::uint16_t>(i + 1);
  }
  for (std::uint32_t i = 0; i < tables.segments.size(); ++i) {
    if ((tables.segments[i].flags & kSegmentVectors) == 0) continue;
    Segments& vectors = vectors_[tables.segments[i].stage];
    if (vectors.n++ == 0) vectors.first = i;
  }
  return {};
}

Weights::Rows Weights::rows_in(const TensorEntry& t, std::uint32_t segment) const {
  const SegmentEntry& s = tables_.segments[segment];
  const std::uint64_t row = row_bytes(*find_format(t.format), t.cols);
  const std::uint64_t begin = s.raw_begin < t.raw_offset ? 0 : (s.raw_begin - t.raw_offset) / row;
  const std::uint64_t end = (s.raw_begin + std::uint64_t{s.raw_size} - t.raw_offset) / row;
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(std::min<std::uint64_t>(end, t.rows) - begin),
          s.raw_begin < t.raw_offset ? t.raw_offset - s.raw_begin : 0};
}

Weights::Segments Weights::segments_of_expert(const TensorEntry& t, std::uint32_t n_experts,
                                              std::uint32_t expert) const {
  const std::uint32_t rows = t.rows / n_experts, first = segment_of_row(t, expert * rows);
  return {first, segment_of_row(t, (expert + 1) * rows - 1) - first + 1};
}

std::uint32_t Weights::segment_of_row(const TensorEntry& t, std::uint32_t row) const {
  const std::uint64_t at = t.raw_offset + std::uint64_t{row} * row_bytes(*find_format(t.format), t.cols);
  std::uint32_t low = t.first_segment, high = t.first_segment + t.n_segments;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (tables_.segments[middle].raw_begin <= at ? low : high) = middle;
  }
  return low;
}

}  // namespace qsf
