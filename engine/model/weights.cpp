#include "model/weights.h"

#include <algorithm>

namespace qsf {

Status Weights::init(Arena& arena, const FileTables& tables, const Config& config) {
  tables_ = tables;
  if (tables.tensors.size() >= 0xffff) {
    return make_error(ErrorCode::bad_section, "the tensor table has {} entries, more than 65534",
                      tables.tensors.size());
  }
  const auto index = arena.take<std::uint16_t>((config.n_layers + 2) * kRoleNames.size(), Region::tables);
  if (!index) return index.error();
  index_ = *index;
  for (std::size_t i = 0; i < tables.tensors.size(); ++i) {
    const TensorEntry& t = tables.tensors[i];
    index_[t.section * kRoleNames.size() + static_cast<std::size_t>(t.role)] = static_cast<std::uint16_t>(i + 1);
  }
  head_ = config.tied ? find(0, Role::token_embd) : find(final_section(), Role::head);
  if (head_ == nullptr) return make_error(ErrorCode::bad_tensor, "the model has no output head");

  std::uint32_t n = 0;
  for (const SegmentEntry& s : tables.segments) n += s.section != 0 || config.tied ? 1 : 0;
  const auto order = arena.take<std::uint32_t>(n, Region::tables);
  if (!order) return order.error();
  order_ = *order;
  n = 0;
  // Layers first, then the final section, then, for a tied model, the embedding as the head.
  for (const bool last : {false, true}) {
    if (last && !config.tied) break;
    for (std::uint32_t i = 0; i < tables.segments.size(); ++i) {
      const std::uint32_t section = tables.segments[i].section;
      if ((section == 0) != last) continue;
      order_[n++] = i;
      n_head_ += last || section == final_section() ? 1 : 0;
    }
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
