// The reader of QSF files, from bytes to structures. It checks every field before it returns it, and allocates nothing.
#pragma once

#include <span>

#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"

namespace qsf {

/// Reads the header from the first 128 bytes. Checks magic, version, both CRCs, the range of every field, and offsets
/// against `file_size`.
Result<Header> read_header(std::span<const std::byte> bytes, std::uint64_t file_size);

/// Reads the section directory of n_sections entries. Checks its CRC, that sections are inside the file, and that no
/// tag occurs twice.
Status read_directory(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                      std::span<SectionEntry> out);
/// Returns the section of a tag, or null.
const SectionEntry* find_section(std::span<const SectionEntry> sections, std::uint32_t tag);
Status check_section(const SectionEntry& section, std::span<const std::byte> bytes);

Status read_layer_index(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                        std::span<LayerEntry> out);

/// Reads the TENS or the SEGS section. Checks the range of each field only; check_tables() compares the tables.
Status read_tensors(const Header& header, std::span<const std::byte> bytes, std::span<TensorEntry> out);
Status read_segments(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                     std::span<SegmentEntry> out);

/// Reads the ROPE section of out.size() divisors, which must be head_dim / 2. Each divisor is above 0 and below 1e9, or
/// kNotTurned.
Status read_rope(const Header& header, std::span<const std::byte> bytes, std::span<float> out);

/// Checks the tables against each other. Segments must cover each stage without gap or overlap, in file order and
/// inside the stage's part of the file. Every tensor must be in its segments, with matrices cut only between strips.
/// Layer entries must agree in size, tensor count, type and checksum, which is combined from the segments' CRCs. Takes
/// entries from the functions above, and time linear in the tables' size.
Status check_tables(const Header& header, const LayerTable& table, std::span<const LayerEntry> layers,
                    std::span<const TensorEntry> tensors, std::span<const SegmentEntry> segments);

/// Checks the 16-byte headers and the flag byte inside a decompressed segment, which must repeat the tensor table.
/// raw.size() must be segments[segment].raw_size. The tables must have passed check_tables().
Status check_inline_headers(const Header& header, std::span<const TensorEntry> tensors,
                            std::span<const SegmentEntry> segments, std::uint32_t segment,
                            std::span<const std::byte> raw);

/// Decompresses `stored` to exactly raw.size() bytes. `stored` may be the last bytes of a buffer that begins with `raw`
/// and is in_place_margin() bytes longer. `workspace` has decompress_workspace() bytes, aligned as pointers are, and
/// belongs to this call alone. Fails with bad_compression, or with unsupported if can_decompress() is false.
Status decompress(Compression compression, std::span<const std::byte> stored, std::span<std::byte> raw,
                  std::span<std::byte> workspace = {});
/// Whether this build reads the compression. Builds with QSF_ZSTD off, such as WebAssembly, do not read ZSTD.
bool can_decompress(Compression compression);
std::uint64_t decompress_workspace(Compression compression);
/// Returns the bytes that a buffer needs in addition to raw_size so that stored bytes at its end decompress to its
/// start.
std::uint64_t in_place_margin(Compression compression, std::uint32_t raw_size, std::uint32_t stored_size);

/// The type of a value in the META section. The reader returns a long text as a text, because only the length in the
/// file differs.
enum class MetaType : std::uint8_t { u32 = 1, f32 = 2, text = 3, long_text = 4 };
struct MetaValue {
  std::string_view key;
  MetaType type = MetaType::u32;
  std::uint32_t u32 = 0;
  float f32 = 0;
  std::string_view text;
};
/// Iterates over the META section; next() returns false at the end. Keys ascend, so none occurs twice. Values are views
/// of `bytes`.
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
