#include <algorithm>
#include <bitset>

#include "file/common_format.h"
#include "file/fields.h"
#include "qsf/base/align.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

Status check_count(const char* what, std::size_t bytes, std::size_t each, std::size_t room) {
  if (bytes == 0 || bytes % each != 0) {
    return make_error(ErrorCode::bad_section, "section {} has {} bytes, not a multiple of {}", what, bytes, each);
  }
  if (bytes / each != room) {
    return make_error(ErrorCode::bad_argument, "section {}: room for {} entries, it has {}", what, room, bytes / each);
  }
  return {};
}

/// Checks the fields that need no other table.
Status check_tensor(const Header& h, const TensorEntry& t, std::size_t i) {
  if (t.stage >= n_weight_stages(h)) {
    return make_error(ErrorCode::bad_tensor, "tensor {}: stage is {}, the last is {}", i, t.stage,
                      n_weight_stages(h) - 1);
  }
  if (role_index(t.role) == kNoRole) {
    return make_error(ErrorCode::unsupported, "tensor {}: role {} is not known", i, t.role);
  }
  const RoleRule& rule = rule_of(t.role);
  const char* name = role_name(t.role).data();
  if (rule.scope != scope_of(h, t.stage)) {
    return make_error(ErrorCode::bad_tensor, "tensor {}: {} cannot be in stage {}", i, name, t.stage);
  }
  const int format = format_index(t.format);
  if (format < 0) {
    return make_error(ErrorCode::unsupported, "tensor {}: quantization type {} of {} is not known", i, t.format, name);
  }
  if (!rule.matrix && t.format != FormatId::f32 && t.format != FormatId::f16) {
    return make_error(ErrorCode::bad_tensor, "tensor {}: {} has type {}, it must be f32 or f16", i, name, t.format);
  }
  const FormatId norm = (h.flags & kFlagFinalNormF32) != 0 ? FormatId::f32 : FormatId::f16;
  if (t.role == Role::final_norm && t.format != norm) {
    return make_error(ErrorCode::bad_tensor, "tensor {}: final_norm has type {}, the header's flags say {}", i,
                      t.format, norm);
  }
  const bool quantized = kFormats[static_cast<std::size_t>(format)].quantized();
  if (t.layout != Layout::rows && (t.layout != Layout::tiles || !quantized)) {
    return make_error(ErrorCode::bad_tensor, "tensor {}: {} of type {} cannot have layout {}", i, name, t.format,
                      t.layout);
  }
  if (t.n_segments == 0) return make_error(ErrorCode::bad_tensor, "tensor {}: {} has no segments", i, name);
  return {};
}

Status check_segment(const Header& h, const SegmentEntry& s, std::uint64_t file_size, std::size_t i) {
  if (s.stage >= n_weight_stages(h)) {
    return make_error(ErrorCode::bad_segment, "segment {}: stage is {}, the last is {}", i, s.stage,
                      n_weight_stages(h) - 1);
  }
  if (s.compression > Compression::zstd) {
    return make_error(ErrorCode::unsupported, "segment {}: compression type {} is not known", i, s.compression);
  }
  if ((s.flags & ~kSegmentVectors) != 0) {
    return make_error(ErrorCode::unsupported, "segment {}: flags are 0x{:x}, bits beyond 1 are not known", i, s.flags);
  }
  if (s.raw_size == 0 || s.raw_size > kMaxSegmentRaw) {
    return make_error(ErrorCode::bad_segment, "segment {}: raw_size is {}, it must be 1 to {}", i, s.raw_size,
                      kMaxSegmentRaw);
  }
  if (s.compression == Compression::none ? s.stored_size != s.raw_size
                                         : s.stored_size == 0 || s.stored_size >= s.raw_size) {
    return make_error(ErrorCode::bad_segment, "segment {}: stored_size {} does not fit raw_size {}, compression {}", i,
                      s.stored_size, s.raw_size, s.compression);
  }
  if (s.offset < kHeaderSize || !fits(s.offset, s.stored_size, file_size)) {
    return make_error(ErrorCode::bad_segment, "segment {} at {}, {} bytes long, is not within bytes {} to {}", i,
                      s.offset, s.stored_size, kHeaderSize, file_size);
  }
  return {};
}

/// Walks the tensor table and the segment table together, once, stage by stage.
struct TableWalk {
  const Header& header;
  const LayerTable& table;
  std::span<const LayerEntry> layers;
  std::span<const TensorEntry> tensors;
  std::span<const SegmentEntry> segments;
  std::size_t next_tensor = 0;
  std::size_t next_segment = 0;
  std::uint64_t file_end = 0;  // end of the previous stage's bytes in the file
  CommonFormat all_formats;

  Status check();
  Status check_stage(std::uint32_t stage);
  Result<std::uint64_t> check_coverage(std::uint32_t stage, std::size_t first, std::size_t last) const;
  Status check_tensors(std::uint32_t stage, std::size_t first, std::size_t last, std::uint64_t raw_size,
                       CommonFormat& formats);
  Status check_matrix(std::size_t t, std::size_t first, std::size_t last, std::uint32_t expert_rows) const;
  Status check_roles(std::uint32_t stage, const std::bitset<kRoles>& present) const;
  Status check_layer(std::uint32_t stage, std::size_t first, std::size_t last, std::size_t n_tensors,
                     std::uint64_t raw_size, FormatId format) const;
};

Status TableWalk::check() {
  if (layers.size() != header.n_layers) {
    return make_error(ErrorCode::bad_argument, "{} layer index entries given, the model has {}", layers.size(),
                      header.n_layers);
  }
  if (table.model.headless != 0 && (header.flags & kFlagTied) != 0) {
    return make_error(ErrorCode::bad_header, "header: the flags say that the head is tied, but there is no head");
  }
  for (std::uint32_t stage = 0; stage < n_weight_stages(header); ++stage) {
    QSF_TRY(check_stage(stage));
  }
  if (next_segment != segments.size()) {
    return make_error(ErrorCode::bad_segment, "segment {} belongs to stage {} and comes after segments of later stages",
                      next_segment, segments[next_segment].stage);
  }
  if (next_tensor != tensors.size()) {
    return make_error(ErrorCode::bad_tensor, "tensor {} belongs to stage {} and comes after tensors of later stages",
                      next_tensor, tensors[next_tensor].stage);
  }
  if (header.quant != static_cast<std::uint8_t>(all_formats.get())) {
    return make_error(ErrorCode::bad_header, "header: quantization type is {}, the matrices make it {}", header.quant,
                      all_formats.get());
  }
  return {};
}

Status TableWalk::check_stage(std::uint32_t stage) {
  const std::size_t first = next_segment;
  while (next_segment < segments.size() && segments[next_segment].stage == stage) ++next_segment;
  const std::size_t last = next_segment;
  if (first == last && scope_of(header, stage) == RoleScope::final && table.model.headless != 0) {
    if (header.final_offset != layers.back().offset) {
      return make_error(ErrorCode::bad_header,
                        "header: the final stage is empty, its offset {} is not the last layer's {}",
                        header.final_offset, layers.back().offset);
    }
    return check_roles(stage, {});
  }
  if (first == last) return make_error(ErrorCode::bad_segment, "stage {} has no segments", stage);
  const Result<std::uint64_t> raw_size = check_coverage(stage, first, last);
  if (!raw_size) return raw_size.error();
  file_end = segments[last - 1].offset + segments[last - 1].stored_size;

  const std::size_t first_tensor = next_tensor;
  CommonFormat formats;
  QSF_TRY(check_tensors(stage, first, last, *raw_size, formats));
  if (scope_of(header, stage) != RoleScope::layer) return {};
  return check_layer(stage, first, last, next_tensor - first_tensor, *raw_size, formats.get());
}

/// Checks that segments [first, last) follow each other, raw and in the file, from the stage's start on, without gaps
/// other than an aligned file's padding. Returns the stage's raw size.
Result<std::uint64_t> TableWalk::check_coverage(std::uint32_t stage, std::size_t first, std::size_t last) const {
  std::uint64_t place = header.embedding_offset;
  if (stage > 0) place = stage <= header.n_layers ? layers[stage - 1].offset : header.final_offset;
  if (place < file_end) {
    return make_error(ErrorCode::bad_segment, "stage {} begins at {}, the one before ends at {}", stage, place,
                      file_end);
  }
  if (stage == 0 && segments[first].compression != Compression::none) {
    return make_error(ErrorCode::bad_segment, "segment {}: compression is {}, the embedding's first has none", first,
                      segments[first].compression);
  }
  std::uint64_t raw = 0;
  for (std::size_t i = first; i < last; ++i) {
    const SegmentEntry& s = segments[i];
    const std::uint64_t places = i > first && (header.flags & kFlagAligned) != 0 ? kAlignment : 1;
    if (s.offset - place >= places) {  // also true if s.offset is smaller
      return make_error(ErrorCode::bad_segment, "segment {} is at {}, not at {}, the next byte of stage {}", i,
                        s.offset, place, stage);
    }
    if (s.raw_begin != raw) {
      return make_error(ErrorCode::bad_segment, "segment {}: raw_begin is {}, stage {} goes on at {}", i, s.raw_begin,
                        stage, raw);
    }
    place = s.offset + s.stored_size;
    raw += s.raw_size;
  }
  if (raw > UINT32_MAX) {
    return make_error(ErrorCode::bad_segment, "stage {} has {} raw bytes, more than 2^32 - 1", stage, raw);
  }
  return raw;
}

Status TableWalk::check_tensors(std::uint32_t stage, std::size_t first, std::size_t last, std::uint64_t raw_size,
                                CommonFormat& formats) {
  std::uint64_t at = 0;         // in the stage's raw bytes
  std::size_t segment = first;  // the segment that contains `at` or ends there
  std::bitset<kRoles> present;  // by index in kRoleRules
  bool matrices = false;
  const LayerKind& kind = kind_of_stage(header, table, stage);
  for (; next_tensor < tensors.size() && tensors[next_tensor].stage == stage; ++next_tensor) {
    const TensorEntry& t = tensors[next_tensor];
    const RoleRule& rule = rule_of(t.role);
    const char* name = role_name(t.role).data();
    if (present[role_index(t.role)]) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: stage {} has {} twice", next_tensor, stage, name);
    }
    present.set(role_index(t.role));
    const std::uint32_t rows = extent(header, kind, rule.rows), cols = extent(header, kind, rule.cols);
    if (!fits_rows(t.role, t.rows, rows) || t.cols != cols) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: {} is {} x {}, the model's sizes make it {} x {}",
                        next_tensor, name, t.rows, t.cols, rows, cols);
    }
    if (rows == 0 || cols == 0) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: {} is {} x {}, the layer has none", next_tensor, name, rows,
                        cols);
    }
    if (t.raw_offset != at + header_bytes(t.role)) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: raw_offset of {} is {}, not {}", next_tensor, name,
                        t.raw_offset, at + header_bytes(t.role));
    }
    const Format& format = kFormats[static_cast<std::size_t>(format_index(t.format))];
    const std::uint64_t end = t.raw_offset + tensor_bytes(format, t.layout, t.rows, t.cols) + trailer_bytes(t.role);
    const auto segment_end = [&] { return std::uint64_t{segments[segment].raw_begin} + segments[segment].raw_size; };
    if (at == segment_end() && segment + 1 < last) ++segment;
    if (t.first_segment != segment || t.n_segments > last - segment) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: {} has {} segments from {}, it begins in {} and {} are left",
                        next_tensor, name, t.n_segments, t.first_segment, segment, last - segment);
    }
    const std::size_t end_segment = segment + t.n_segments;
    if (rule.matrix != ((segments[segment].flags & kSegmentVectors) == 0)) {
      return make_error(ErrorCode::bad_segment, "segment {}: flags are 0x{:x}, but it holds {}", segment,
                        segments[segment].flags, name);
    }
    if (rule.matrix) {
      matrices = true;
      formats.add(t.format);
      all_formats.add(t.format);
      QSF_TRY(check_matrix(next_tensor, segment, end_segment, expert_share(header, kind, rule)));
      segment = end_segment - 1;
      if (end != segment_end()) {
        return make_error(ErrorCode::bad_tensor, "tensor {}: {} ends at {}, its segments at {}", next_tensor, name, end,
                          segment_end());
      }
    } else {
      if (matrices) {
        return make_error(ErrorCode::bad_tensor, "tensor {}: {} comes after a matrix", next_tensor, name);
      }
      if (t.n_segments != 1 || end > segment_end()) {
        return make_error(ErrorCode::bad_tensor, "tensor {}: {} is not in one segment", next_tensor, name);
      }
    }
    at = end;
  }
  if (at != raw_size) {
    return make_error(ErrorCode::bad_tensor, "stage {}: its tensors end at {}, its segments at {}", stage, at,
                      raw_size);
  }
  return check_roles(stage, present);
}

/// Checks the segments [first, last) of matrix t: no vectors, each except the first at a strip and, if expert_rows is
/// not 0, none with rows of two experts.
Status TableWalk::check_matrix(std::size_t t, std::size_t first, std::size_t last, std::uint32_t expert_rows) const {
  const TensorEntry& tensor = tensors[t];
  const Format& format = kFormats[static_cast<std::size_t>(format_index(tensor.format))];
  const std::uint64_t strip = strip_rows(tensor.layout) * row_bytes(format, tensor.cols);
  for (std::size_t i = first; i < last; ++i) {
    const SegmentEntry& s = segments[i];
    if ((s.flags & kSegmentVectors) != 0) {
      return make_error(ErrorCode::bad_segment, "segment {}: flags are 0x{:x}, but it holds {}", i, s.flags,
                        role_name(tensor.role));
    }
    if (i > first && (s.raw_begin <= tensor.raw_offset || (s.raw_begin - tensor.raw_offset) % strip != 0)) {
      return make_error(ErrorCode::bad_segment, "segment {}: raw_begin {} is not a boundary of strips of {}", i,
                        s.raw_begin, role_name(tensor.role));
    }
    if (expert_rows == 0) continue;
    const std::uint64_t row = row_bytes(format, tensor.cols), expert = expert_rows * row;
    const std::uint64_t begin = i > first ? s.raw_begin - tensor.raw_offset : 0;
    const std::uint64_t end = s.raw_begin + std::uint64_t{s.raw_size} - tensor.raw_offset;
    if (tensor.layout == Layout::tiles && expert_rows % kTileRows != 0) {
      return make_error(ErrorCode::bad_tensor, "tensor {}: {} of experts of {} rows cannot have layout tiles", t,
                        role_name(tensor.role), expert_rows);
    }
    if (begin / expert != (end - 1) / expert) {
      return make_error(ErrorCode::bad_segment, "segment {} holds rows of {} of several experts", i,
                        role_name(tensor.role));
    }
  }
  return {};
}

Status TableWalk::check_roles(std::uint32_t stage, const std::bitset<kRoles>& present) const {
  const RoleContext context = role_context(header, table, stage, (header.flags & kFlagTied) != 0);
  for (std::size_t i = 0; i < kRoles; ++i) {
    const RoleRule& rule = kRoleRules[i];
    if (rule.scope != scope_of(header, stage)) continue;
    const Requirement requirement = rule.requirement(context);
    if (requirement == Requirement::always && !present[i]) {
      return make_error(ErrorCode::bad_tensor, "stage {} lacks {}", stage, rule.name);
    }
    if (requirement == Requirement::never && present[i]) {
      if (rule.role == Role::head) {
        return make_error(ErrorCode::bad_tensor, "stage {} has head, the header's flags say that it is tied", stage);
      }
      return make_error(ErrorCode::bad_tensor, "stage {} has {}, which a {} of this kind has not", stage, rule.name,
                        rule.scope == RoleScope::layer ? "layer" : "model");
    }
  }
  return {};
}

Status TableWalk::check_layer(std::uint32_t stage, std::size_t first, std::size_t last, std::size_t n_tensors,
                              std::uint64_t raw_size, FormatId format) const {
  const LayerEntry& layer = layers[stage - 1];
  std::uint64_t stored_size = 0;
  std::uint32_t crc = 0;
  Compression compression = Compression::none;
  for (std::size_t i = first; i < last; ++i) {
    const SegmentEntry& s = segments[i];
    stored_size += s.stored_size;
    crc = crc32_combine(crc, s.crc, s.stored_size);
    if (s.compression == Compression::none) continue;
    if (compression != Compression::none && s.compression != compression) {
      return make_error(ErrorCode::bad_segment, "segment {}: compression is {}, others of its layer have {}", i,
                        s.compression, compression);
    }
    compression = s.compression;
  }
  const struct {
    const char* name;
    std::uint64_t stated, is;
  } fields[] = {
      {"stored size", layer.stored_size, stored_size},
      {"raw size", layer.raw_size, raw_size},
      {"quantization type", layer.quant, static_cast<std::uint64_t>(format)},
      {"compression", static_cast<std::uint64_t>(layer.compression), static_cast<std::uint64_t>(compression)},
      {"number of tensors", layer.n_tensors, n_tensors},
      {"checksum", layer.crc, crc},
  };
  for (const auto& f : fields) {
    if (f.stated != f.is) {
      return make_error(ErrorCode::bad_index, "layer {}: {} is {}, the tables make it {}", stage - 1, f.name, f.stated,
                        f.is);
    }
  }
  return {};
}

/// Checks the 16 bytes before tensor t, or the flag byte after a final norm.
Status check_tensor_header(const Header& header, const TensorEntry& t, std::span<const SegmentEntry> segments,
                           const std::byte* data, const char* name) {
  if (t.role == Role::final_norm) {
    const Format& format = kFormats[static_cast<std::size_t>(format_index(t.format))];
    const std::byte is = data[tensor_bytes(format, t.layout, t.rows, t.cols)];
    const std::byte want = (header.flags & kFlagTied) != 0 ? kTiedByte : kSeparateByte;
    if (is == want) return {};
    return make_error(ErrorCode::bad_tensor,
                      "final stage: its flag byte is 0x{:02x}, the header's flags make it 0x{:02x}",
                      std::to_integer<unsigned>(is), std::to_integer<unsigned>(want));
  }
  const auto disagree = [name](const char* field, std::uint64_t is, std::uint64_t want) {
    return make_error(ErrorCode::bad_tensor, "header in front of {}: {} is {}, the tensor table makes it {}", name,
                      field, is, want);
  };
  const std::byte* at = data - kTensorHeaderSize;
  const auto agree_on = [&](const auto& h) -> Status {
    if (h.rows != t.rows) return disagree("rows", h.rows, t.rows);
    if (h.cols != t.cols) return disagree("cols", h.cols, t.cols);
    if (h.layout != t.layout) return disagree("layout", std::uint64_t(h.layout), std::uint64_t(t.layout));
    if (h.reserved != 0) return disagree("reserved", h.reserved, 0);
    const bool inherits = std::is_same_v<decltype(h), const TensorHeader&> && h.format == FormatId::inherit &&
                          rule_of(t.role).matrix && header.quant == static_cast<std::uint8_t>(t.format);
    if (h.format != t.format && !inherits) {
      return disagree("quantization type", std::uint64_t(h.format), std::uint64_t(t.format));
    }
    return {};
  };
  if (t.role != Role::token_embd) {
    const auto h = decode<TensorHeader>(at);
    if (h.role != static_cast<std::uint32_t>(t.role)) return disagree("type", h.role, std::uint64_t(t.role));
    return agree_on(h);
  }
  const auto h = decode<EmbeddingHeader>(at);
  std::uint64_t stored = 0;
  for (const SegmentEntry& s : segments.subspan(t.first_segment, t.n_segments)) stored += s.stored_size;
  stored -= kTensorHeaderSize;
  if (h.stored_size != static_cast<std::uint32_t>(stored)) return disagree("size", h.stored_size, stored);
  return agree_on(h);
}

}  // namespace

Status read_tensors(const Header& header, std::span<const std::byte> bytes, std::span<TensorEntry> out) {
  QSF_TRY(check_count("TENS", bytes.size(), kTensorEntrySize, out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * kTensorEntrySize;
    out[i] = decode<TensorEntry>(at);
    QSF_TRY(check_tensor(header, out[i], i));
    if (const auto reserved = load_le<std::uint8_t>(at + 7); reserved != 0) {
      return make_error(ErrorCode::unsupported, "tensor {}: reserved byte 7 is 0x{:x}, not 0", i, reserved);
    }
  }
  return {};
}

Status read_segments(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                     std::span<SegmentEntry> out) {
  QSF_TRY(check_count("SEGS", bytes.size(), kSegmentEntrySize, out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * kSegmentEntrySize;
    out[i] = decode<SegmentEntry>(at);
    QSF_TRY(check_segment(header, out[i], file_size, i));
    if (const auto reserved = load_le<std::uint16_t>(at + 30); reserved != 0) {
      return make_error(ErrorCode::unsupported, "segment {}: reserved bytes 30-31 hold 0x{:x}, not 0", i, reserved);
    }
  }
  return {};
}

Status check_tables(const Header& header, const LayerTable& table, std::span<const LayerEntry> layers,
                    std::span<const TensorEntry> tensors, std::span<const SegmentEntry> segments) {
  return TableWalk{header, table, layers, tensors, segments, 0, 0, 0, {}}.check();
}

Status check_inline_headers(const Header& header, std::span<const TensorEntry> tensors,
                            std::span<const SegmentEntry> segments, std::uint32_t segment,
                            std::span<const std::byte> raw) {
  if (segment >= segments.size() || raw.size() != segments[segment].raw_size) {
    return make_error(ErrorCode::bad_argument, "segment {} with {} raw bytes is not in the segment table", segment,
                      raw.size());
  }
  const SegmentEntry& s = segments[segment];
  // Tensors ascend by first segment, so the tensors that begin in this one are neighbours.
  const auto first = std::ranges::lower_bound(tensors, segment, {}, &TensorEntry::first_segment);
  for (auto t = first; t != tensors.end() && t->first_segment == segment; ++t) {
    const std::byte* data = raw.data() + (t->raw_offset - s.raw_begin);
    QSF_TRY(check_tensor_header(header, *t, segments, data, role_name(t->role).data()));
  }
  return {};
}

}  // namespace qsf
