// The whole path from a file's bytes to its weights, as the engine goes it: every check, every segment.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "qsf/base/checksum.h"
#include "qsf/file/reader.h"

namespace qsf::test {

struct OpenFile {
  Header header;
  std::vector<SectionEntry> sections;
  std::vector<LayerEntry> layers;
  LayerTableBuilder table;
  std::vector<TensorEntry> tensors;
  std::vector<SegmentEntry> segments;
  std::vector<std::string> meta;            // "key=value", floats in hexadecimal
  std::vector<std::vector<std::byte>> raw;  // decompressed segments
};

/// Bytes of the file that the reader itself has placed inside it; a copy of exactly that size, so that a sanitizer sees
/// a read past the end.
inline std::vector<std::byte> piece(std::span<const std::byte> file, std::uint64_t offset, std::uint64_t size) {
  const auto bytes = file.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  return {bytes.begin(), bytes.end()};
}

/// One segment as a slot sees it: stored bytes at the end of the buffer, decompressed to its start.
inline Result<std::vector<std::byte>> open_segment(const OpenFile& f, std::span<const std::byte> file,
                                                   std::uint32_t i) {
  const SegmentEntry& s = f.segments[i];
  std::vector<std::byte> slot(s.raw_size + in_place_margin(s.compression, s.raw_size, s.stored_size));
  std::vector<std::byte> workspace(decompress_workspace(s.compression));
  const std::span<std::byte> stored = std::span(slot).last(s.stored_size);
  std::memcpy(stored.data(), file.data() + s.offset, stored.size());
  if (crc32(stored) != s.crc) {
    return make_error(ErrorCode::bad_checksum, "segment {} does not have its checksum", i);
  }
  if (Status status = decompress(s.compression, stored, std::span(slot).first(s.raw_size), workspace); !status) {
    return status.error();
  }
  slot.resize(s.raw_size);
  if (Status status = check_inline_headers(f.header, f.tensors, f.segments, i, slot); !status) return status.error();
  return slot;
}

inline Result<OpenFile> open_file(std::span<const std::byte> file) {
  OpenFile f;
  const Result<Header> header = read_header(file.first(std::min<std::size_t>(file.size(), kHeaderSize)), file.size());
  if (!header) return header.error();
  f.header = *header;

  f.sections.resize(f.header.n_sections);
  const auto directory = piece(file, f.header.directory_offset, std::uint64_t{f.header.n_sections} * kSectionEntrySize);
  if (Status s = read_directory(f.header, directory, file.size(), f.sections); !s) return s.error();
  f.layers.resize(f.header.n_layers);
  const auto index = piece(file, f.header.layer_index_offset, std::uint64_t{f.header.n_layers} * kLayerEntrySize);
  if (Status s = read_layer_index(f.header, index, file.size(), f.layers); !s) return s.error();

  for (const SectionEntry& section : f.sections) {
    const auto bytes = piece(file, section.offset, section.size);
    if (Status s = check_section(section, bytes); !s) return s.error();
    if (section.tag == kTagTensors) {
      f.tensors.resize(bytes.size() / kTensorEntrySize);
      if (Status s = read_tensors(f.header, bytes, f.tensors); !s) return s.error();
    } else if (section.tag == kTagSegments) {
      f.segments.resize(bytes.size() / kSegmentEntrySize);
      if (Status s = read_segments(f.header, bytes, file.size(), f.segments); !s) return s.error();
    } else if (section.tag == kTagMeta) {
      Result<MetaReader> reader = MetaReader::open(bytes);
      if (!reader) return reader.error();
      for (MetaValue value;;) {
        const Result<bool> more = reader->next(value);
        if (!more) return more.error();
        if (!*more) break;
        char number[32];
        std::snprintf(number, sizeof number, value.type == MetaType::f32 ? "%a" : "%.0f",
                      value.type == MetaType::f32 ? static_cast<double>(value.f32) : value.u32);
        f.meta.push_back(std::string(value.key) + "=" +
                         (value.type == MetaType::text ? std::string(value.text) : std::string(number)));
      }
    } else if (section.tag == kTagRope) {
      std::vector<float> divisors(f.header.head_dim / 2);
      if (Status s = read_rope(f.header, bytes, divisors); !s) return s.error();
    }
  }
  std::vector<std::byte> meta, layers;
  for (const SectionEntry& section : f.sections) {
    if (section.tag == kTagMeta) meta = piece(file, section.offset, section.size);
    if (section.tag == kTagLayers) layers = piece(file, section.offset, section.size);
  }
  Result<LayerTableBuilder> table = load_layer_table(f.header, meta, layers);
  if (!table) return table.error();
  f.table = std::move(*table);
  if (Status s = check_tables(f.header, f.table.view(), f.layers, f.tensors, f.segments); !s) return s.error();
  for (std::uint32_t i = 0; i < f.segments.size(); ++i) {
    Result<std::vector<std::byte>> raw = open_segment(f, file, i);
    if (!raw) return raw.error();
    f.raw.push_back(std::move(*raw));
  }
  return f;
}

}  // namespace qsf::test
