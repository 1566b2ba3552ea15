// Reading QSF: bytes to structures. Every field is checked before it is returned; nothing is allocated.
#pragma once

#include <span>

#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf {

/// Header from the first 128 bytes: magic, version, both CRCs, ranges of every field, offsets inside `file_size`.
Result<Header> read_header(std::span<const std::byte> bytes, std::uint64_t file_size);

/// The section directory (n_sections entries): CRC, offsets and sizes inside the file, no tag twice.
Status read_directory(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                      std::span<SectionEntry> out);
/// nullptr when the tag is not there.
const SectionEntry* find_section(std::span<const SectionEntry> sections, std::uint32_t tag);
Status check_section(const SectionEntry& section, std::span<const std::byte> bytes);

Status read_layer_index(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                        std::span<LayerEntry> out);

/// Fixed-size entries of the TENS and SEGS sections; field ranges only (check_tables sees them together).
Status read_tensors(const Header& header, std::span<const std::byte> bytes, std::span<TensorEntry> out);
Status read_segments(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                     std::span<SegmentEntry> out);

/// The ROPE section: out.size() == head_dim / 2 divisors, each above 0 and below 1e9, or kNotTurned.
Status read_rope(const Header& header, std::span<const std::byte> bytes, std::span<float> out);

/// The tables against each other: segments cover each weight section without gap or overlap, in file order, inside the
/// section's place; every tensor lies in its segments, matrices cut only between strips; layer entries agree in size,
/// tensor count, type and (by combination of the segments' CRCs) checksum. Linear in the tables' size. Entries must
/// have come from the functions above.
Status check_tables(const Header& header, const LayerTable& table, std::span<const LayerEntry> layers,
                    std::span<const TensorEntry> tensors, std::span<const SegmentEntry> segments);

/// The section's 16-byte headers and flag byte that lie inside a decompressed segment must repeat the tensor table.
/// raw.size() == segments[segment].raw_size. The tables must have passed check_tables.
Status check_inline_headers(const Header& header, std::span<const TensorEntry> tensors,
                            std::span<const SegmentEntry> segments, std::uint32_t segment,
                            std::span<const std::byte> raw);

/// Decompresses one block to exactly raw.size() bytes; `stored` may be the last bytes of a buffer that begins with
/// `raw` and has in_place_margin() bytes more. `workspace`: decompress_workspace() bytes, aligned as pointers are, of
/// this call alone. bad_compression; unsupported where can_decompress() says no.
Status decompress(Compression compression, std::span<const std::byte> stored, std::span<std::byte> raw,
                  std::span<std::byte> workspace = {});
/// Whether this build reads it: ZSTD is left out where QSF_ZSTD is off, as in pages.
bool can_decompress(Compression compression);
std::uint64_t decompress_workspace(Compression compression);
/// Bytes a buffer needs beyond raw_size so that stored bytes at its very end decompress to its start.
std::uint64_t in_place_margin(Compression compression, std::uint32_t raw_size, std::uint32_t stored_size);

/// One key and value of the META section. Readers give a long text as a text: the length in the file is all that
/// differs.
enum class MetaType : std::uint8_t { u32 = 1, f32 = 2, text = 3, long_text = 4 };
struct MetaValue {
  std::string_view key;
  MetaType type = MetaType::u32;
  std::uint32_t u32 = 0;
  float f32 = 0;
  std::string_view text;
};
/// Walks the META section; `next` gives false at the end. Keys ascend, so none comes twice. Views point into `bytes`.
class MetaReader {
 public:
  static Result<MetaReader> open(std::span<const std::byte> bytes);
  Result<bool> next(MetaValue& out);

 private:
  std::span<const std::byte> left_;
  std::uint32_t n_left_ = 0;
  std::string_view last_key_;
};

}  // namespace qsf
