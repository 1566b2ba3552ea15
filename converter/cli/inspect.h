// The contents of a QSF file as text for people, with every checksum checked.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "converter/files/input.h"
#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf::convert {

/// The tables of a file, checked field by field and against each other.
struct Tables {
  Header header;
  std::vector<SectionEntry> sections;
  std::vector<LayerEntry> layers;
  LayerTableBuilder table;
  std::vector<TensorEntry> tensors;
  std::vector<SegmentEntry> segments;
};
Result<Tables> read_tables(const Input& file);

/// Returns the decompressed bytes of one segment. Checks its checksum and inline headers first.
Result<std::vector<std::byte>> read_segment(const Input& file, const Tables& tables, std::uint32_t segment);

/// Prints header, sections, metadata, index, tensors and segments to `out`, then checks all bytes. Returns the first
/// damage; everything readable before it is printed.
Status inspect(const Input& file, std::FILE* out);

}  // namespace qsf::convert
