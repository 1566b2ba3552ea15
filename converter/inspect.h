// What a QSF file holds, for people, with every checksum checked.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

#include "converter/input.h"
#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf::convert {

/// A file's tables, checked field by field and against each other.
struct Tables {
  Header header;
  std::vector<SectionEntry> sections;
  std::vector<LayerEntry> layers;
  LayerTableSource table;
  std::vector<TensorEntry> tensors;
  std::vector<SegmentEntry> segments;
};
Result<Tables> read_tables(const Input& file);

/// One segment's decompressed bytes, after its checksum and inline headers were checked.
Result<std::vector<std::byte>> read_segment(const Input& file, const Tables& tables, std::uint32_t segment);

/// Prints header, sections, metadata, index, tensors and segments to `out`, then checks all bytes. The first damage
/// found is the error; what could be read before it has been printed.
Status inspect(const Input& file, std::FILE* out);

}  // namespace qsf::convert
