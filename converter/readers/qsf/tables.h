// The tables of a .qsf file, and its segments.
#pragma once

#include <cstdint>
#include <string>
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
/// Reads them all, and checks the checksums of all sections.
Result<Tables> read_tables(const Input& file);

/// The steps of read_tables(). The first reads header, directory and layer index, which locate everything else.
Status read_front(const Input& file, Tables& tables);
Status check_sections(const Input& file, const Tables& tables);
Status read_lists(const Input& file, Tables& tables);

/// Returns the decompressed bytes of one segment. Checks its checksum and inline headers first.
Result<std::vector<std::byte>> read_segment(const Input& file, const Tables& tables, std::uint32_t segment);

/// Returns the bytes of a section. Returns unsupported if it has more than 256 MiB.
Result<std::vector<std::byte>> section_bytes(const Input& file, const SectionEntry& section);
/// Returns bad_section if a section, which `what` names, is missing.
Status need(const SectionEntry* section, const char* what);
/// Returns the checksum of a range, read piece by piece. `crc` is the checksum of the bytes before it.
Result<std::uint32_t> crc_of(const Input& file, std::uint64_t offset, std::uint64_t size, std::uint32_t crc = 0);

/// Return names for people: "TENS", and "embedding", "layer 3" or "final".
std::string tag_text(std::uint32_t tag);
std::string stage_name(const Header& header, std::uint32_t stage);

}  // namespace qsf::convert
