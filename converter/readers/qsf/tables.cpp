#include "converter/readers/qsf/tables.h"

#include <algorithm>

#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"

namespace qsf::convert {
namespace {

constexpr std::uint64_t kPiece = 1 << 20;
constexpr std::uint64_t kMaxSection = 256 << 20;  // bytes of a section that is read whole

}  // namespace

std::string tag_text(std::uint32_t tag) {
  std::string text;
  for (int shift = 0; shift < 32; shift += 8) {
    const char c = static_cast<char>(tag >> shift & 0xff);
    text += c >= 32 && c < 127 ? c : '?';
  }
  return text;
}
std::string stage_name(const Header& h, std::uint32_t stage) {
  switch (scope_of(h, stage)) {
    case RoleScope::embedding:
      return "embedding";
    case RoleScope::layer:
      return "layer " + std::to_string(stage - 1);
    case RoleScope::final:
      return "final";
  }
  return {};
}

Result<std::uint32_t> crc_of(const Input& file, std::uint64_t offset, std::uint64_t size, std::uint32_t crc) {
  std::vector<std::byte> piece(std::min(size, kPiece));
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.resize(std::min(size - at, kPiece));
    QSF_TRY(file.read(offset + at, piece));
    crc = crc32(piece, crc);
  }
  return crc;
}

Result<std::vector<std::byte>> section_bytes(const Input& file, const SectionEntry& section) {
  if (section.size <= kMaxSection) return read_range(file, section.offset, section.size);
  return make_error(ErrorCode::unsupported, "the section {} has {} bytes, {} is the most", tag_text(section.tag),
                    section.size, kMaxSection);
}

Status need(const SectionEntry* section, const char* what) {
  if (section) return {};
  return make_error(ErrorCode::bad_section, "the section {} is missing", what);
}

Status read_front(const Input& file, Tables& t) {
  if (file.size < kHeaderSize) {
    return make_error(ErrorCode::truncated, "{} bytes are too few for a QSF file, whose header has {}", file.size,
                      kHeaderSize);
  }
  QSF_LET(head, read_head(file, kHeaderSize));
  QSF_LET(header, read_header(head, file.size));
  t.header = header;
  t.sections.resize(t.header.n_sections);
  QSF_LET(directory,
          read_range(file, t.header.directory_offset, std::uint64_t{t.header.n_sections} * kSectionEntrySize));
  QSF_TRY(read_directory(t.header, directory, file.size, t.sections));
  t.layers.resize(t.header.n_layers);
  QSF_LET(index, read_range(file, t.header.layer_index_offset, std::uint64_t{t.header.n_layers} * kLayerEntrySize));
  return read_layer_index(t.header, index, file.size, t.layers);
}

Status check_sections(const Input& file, const Tables& t) {
  for (const SectionEntry& section : t.sections) {
    QSF_LET(crc, crc_of(file, section.offset, section.size));
    if (crc == section.crc) continue;
    return make_error(ErrorCode::bad_checksum, "section {} has the checksum 0x{:08x}, but the directory says 0x{:08x}",
                      tag_text(section.tag), crc, section.crc);
  }
  return {};
}

Status read_lists(const Input& file, Tables& t) {
  const SectionEntry* tensors = find_section(t.sections, kTagTensors);
  const SectionEntry* segments = find_section(t.sections, kTagSegments);
  QSF_TRY(need(tensors, "TENS"));
  QSF_TRY(need(segments, "SEGS"));
  QSF_LET(tensor_bytes, section_bytes(file, *tensors));
  t.tensors.resize(tensors->size / kTensorEntrySize);
  QSF_TRY(read_tensors(t.header, tensor_bytes, t.tensors));
  QSF_LET(segment_bytes, section_bytes(file, *segments));
  t.segments.resize(segments->size / kSegmentEntrySize);
  QSF_TRY(read_segments(t.header, segment_bytes, file.size, t.segments));
  const auto bytes_of = [&](std::uint32_t tag) -> Result<std::vector<std::byte>> {
    const SectionEntry* section = find_section(t.sections, tag);
    if (section == nullptr) return std::vector<std::byte>{};
    return section_bytes(file, *section);
  };
  QSF_LET(meta, bytes_of(kTagMeta));
  QSF_LET(layer_table, bytes_of(kTagLayers));
  QSF_LET(table, load_layer_table(t.header, meta, layer_table));
  t.table = std::move(table);
  return check_tables(t.header, t.table.view(), t.layers, t.tensors, t.segments);
}

Result<Tables> read_tables(const Input& file) {
  Tables t;
  QSF_TRY(read_front(file, t));
  QSF_TRY(check_sections(file, t));
  QSF_TRY(read_lists(file, t));
  return t;
}

Result<std::vector<std::byte>> read_segment(const Input& file, const Tables& t, std::uint32_t i) {
  const SegmentEntry& segment = t.segments[i];
  QSF_LET(stored, read_range(file, segment.offset, segment.stored_size));
  const std::uint32_t crc = crc32(stored);
  if (crc != segment.crc) {
    return make_error(ErrorCode::bad_checksum, "segment {} ({}) has the checksum 0x{:08x}, but the table says 0x{:08x}",
                      i, stage_name(t.header, segment.stage), crc, segment.crc);
  }
  std::vector<std::byte> raw(segment.raw_size);
  std::vector<std::byte> workspace(decompress_workspace(segment.compression));
  QSF_TRY(decompress(segment.compression, stored, raw, workspace));
  QSF_TRY(check_inline_headers(t.header, t.tensors, t.segments, i, raw));
  return raw;
}

}  // namespace qsf::convert
