// The contents of a planned file's segments.
#include <algorithm>
#include <array>

#include "file/fields.h"
#include "qsf/base/try.h"
#include "qsf/file/file_plan.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"

namespace qsf {

std::uint32_t FilePlan::first_tensor(std::uint32_t segment) const {
  // The last tensor that begins in an earlier segment is continued, unless one begins in this segment.
  const auto begins = std::ranges::lower_bound(tensors_, segment, {}, &TensorEntry::first_segment);
  const bool here = begins != tensors_.end() && begins->first_segment == segment;
  return static_cast<std::uint32_t>(begins - tensors_.begin()) - (here ? 0 : 1);
}

std::optional<FilePlan::Rows> FilePlan::rows_of(std::uint32_t segment) const {
  const SegmentEntry& s = segments_[segment];
  if ((s.flags & kSegmentVectors) != 0) return {};
  Rows rows;
  rows.tensor = first_tensor(segment);
  const TensorEntry& t = tensors_[rows.tensor];
  rows.at = segment == t.first_segment ? kTensorHeaderSize : 0;
  const std::uint64_t row = row_bytes(*find_format(t.format), t.cols);
  rows.begin = static_cast<std::uint32_t>((s.raw_begin + rows.at - t.raw_offset) / row);
  const auto room = static_cast<std::uint32_t>((s.raw_size - rows.at) / row);
  rows.n = std::min(room, t.rows - std::min(rows.begin, t.rows));  // without padding
  return rows;
}

void FilePlan::put_frame(std::uint32_t tensor, std::span<std::byte> raw) const {
  const TensorEntry& t = tensors_[tensor];
  std::byte* const data = raw.data() + (t.raw_offset - segments_[t.first_segment].raw_begin);
  if (t.role == Role::token_embd) {
    std::uint64_t stored = 0;
    for (const SegmentEntry& s : std::span(segments_).subspan(t.first_segment, t.n_segments)) stored += s.stored_size;
    const auto size = static_cast<std::uint32_t>(stored - kTensorHeaderSize);
    encode(EmbeddingHeader{t.format, t.layout, 0, size, t.rows, t.cols}, data - kTensorHeaderSize);
  } else if (header_bytes(t.role) > 0) {
    encode(TensorHeader{static_cast<std::uint32_t>(t.role), t.rows, t.cols, t.format, t.layout, 0},
           data - kTensorHeaderSize);
  }
  if (trailer_bytes(t.role) == 0) return;
  data[row_bytes(*find_format(t.format), t.cols)] = (header_.flags & kFlagTied) != 0 ? kTiedByte : kSeparateByte;
}

void FilePlan::arrange(std::uint32_t tensor, std::uint32_t n, std::span<std::byte> data, Room& room) const {
  const TensorEntry& t = tensors_[tensor];
  if (t.layout != Layout::tiles) return;
  const Format& format = *find_format(t.format);
  const std::uint64_t row = row_bytes(format, t.cols);
  for (std::uint32_t r = 0; r < n; r += kTileRows) {
    const std::uint32_t held = std::min(kTileRows, n - r);
    const std::span<std::byte> strip = data.subspan(r * row, kTileRows * row);
    room.strip.assign(strip.begin(), strip.begin() + static_cast<std::ptrdiff_t>(held * row));
    tile_strip(format, room.strip, held, t.cols, strip);
  }
}

void FilePlan::arrange(std::uint32_t tensor, std::span<const std::byte* const> rows, std::span<std::byte> out) const {
  const TensorEntry& t = tensors_[tensor];
  const Format& format = *find_format(t.format);
  const std::uint64_t row = row_bytes(format, t.cols);
  if (t.layout == Layout::tiles) return tile_rows(format, rows, t.cols, out.first(kTileRows * row));
  for (std::size_t r = 0; r < rows.size(); ++r) std::copy_n(rows[r], row, out.data() + r * row);
}

std::pair<std::uint64_t, std::uint64_t> FilePlan::room_sizes() const {
  std::uint64_t strip = 0, part = 0;
  for (const TensorEntry& t : tensors_) {
    const std::uint64_t size = strip_rows(t.layout) * row_bytes(*find_format(t.format), t.cols);
    strip = std::max(strip, t.layout == Layout::tiles ? size : 0);
    part = std::max(part, size);
  }
  for (const SegmentEntry& s : segments_) {
    if ((s.flags & kSegmentVectors) != 0) part = std::max<std::uint64_t>(part, s.raw_size);
  }
  return {strip, part};
}

std::uint64_t FilePlan::room_bytes() const {
  const auto [strip, part] = room_sizes();
  return strip + part;
}

FilePlan::Room FilePlan::make_room() const {
  const auto [strip, part] = room_sizes();
  Room room;
  room.strip.reserve(strip);
  room.part.reserve(part);
  return room;
}

/// Fills in the tensors of a segment of vectors.
Status FilePlan::fill_vectors(std::uint32_t segment, std::span<std::byte> raw) const {
  for (std::uint32_t i = first_tensor(segment); i < tensors_.size() && tensors_[i].first_segment == segment; ++i) {
    const TensorEntry& t = tensors_[i];
    const std::uint64_t at = t.raw_offset - segments_[segment].raw_begin;
    QSF_TRY(sources_[i].rows_of(0, 1, raw.subspan(at, row_bytes(*find_format(t.format), t.cols))));
    put_frame(i, raw);
  }
  return {};
}

/// Fills whole strips of a matrix, from row `begin` on.
Status FilePlan::fill_strips(std::uint32_t tensor, std::uint32_t begin, std::span<std::byte> data, Room& room) const {
  const TensorEntry& t = tensors_[tensor];
  const std::uint64_t row = row_bytes(*find_format(t.format), t.cols);
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(data.size() / row, t.rows - begin));
  QSF_TRY(sources_[tensor].rows_of(begin, n, data.first(n * row)));
  arrange(tensor, n, data, room);
  return {};
}

Status FilePlan::read(std::uint32_t segment, std::uint64_t begin, std::span<std::byte> out, Room& room) const {
  const SegmentEntry& s = segments_[segment];
  const std::optional<Rows> rows = rows_of(segment);
  if (!rows) {
    if (out.size() == s.raw_size) return fill_vectors(segment, out);
    room.part.resize(s.raw_size);
    QSF_TRY(fill_vectors(segment, room.part));
    std::ranges::copy(std::span(room.part).subspan(begin, out.size()), out.begin());
    return {};
  }
  if (begin < rows->at) {
    std::array<std::byte, kTensorHeaderSize> header;
    put_frame(rows->tensor, header);
    const std::size_t n = std::min<std::size_t>(rows->at - begin, out.size());
    std::ranges::copy(std::span(header).subspan(begin, n), out.begin());
    out = out.subspan(n);
    begin += n;
  }
  const TensorEntry& t = tensors_[rows->tensor];
  const std::uint64_t strip = strip_rows(t.layout) * row_bytes(*find_format(t.format), t.cols);
  for (std::uint64_t at = begin - rows->at; !out.empty();) {
    const auto first = rows->begin + static_cast<std::uint32_t>(at / strip * strip_rows(t.layout));
    const std::uint64_t within = at % strip;
    if (within == 0 && out.size() >= strip) {
      const std::span<std::byte> whole = out.first(out.size() / strip * strip);
      QSF_TRY(fill_strips(rows->tensor, first, whole, room));
      out = out.subspan(whole.size());
      at += whole.size();
      continue;
    }
    room.part.resize(strip);
    QSF_TRY(fill_strips(rows->tensor, first, room.part, room));
    const std::size_t n = std::min<std::size_t>(strip - within, out.size());
    std::ranges::copy(std::span(room.part).subspan(within, n), out.begin());
    out = out.subspan(n);
    at += n;
  }
  return {};
}

}  // namespace qsf
