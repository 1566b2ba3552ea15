// The plan of a QSF file: the place of every byte, and the contents of any range. The file need not exist.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/file/layer_table.h"
#include "qsf/file/layout.h"
#include "qsf/file/reader.h"

namespace qsf {

struct MetaEntry {
  std::string key;
  MetaType type = MetaType::u32;
  std::uint32_t u32 = 0;
  float f32 = 0;
  std::string text;
};

/// A run of bytes of one of the files that a model is made from. The maker numbers the files.
struct InputRun {
  std::uint32_t input = 0;
  std::uint64_t offset = 0, size = 0;  // bytes
};

/// The origin of rows.
enum class RowsFrom : std::uint8_t {
  anywhere,   // reading them may read anything
  runs,       // reading them reads some runs and nothing else
  reordered,  // the runs, one after the other, are the rows of whole heads, in the order of TensorSpec::heads
  stored,     // the runs, one after the other, are the rows
};

/// Heads whose first values RoPE rotates, stored as neighbouring pairs: the file has the first value of each pair
/// before all second ones.
struct RotatedHeads {
  std::uint32_t dim = 0;  // rows (or vector elements) of a head; 0: none
  std::uint32_t rotated = 0;

  /// Returns the stored row of the file's row `r`.
  std::uint32_t stored_row(std::uint32_t r) const {
    if (dim == 0) return r;
    const std::uint32_t within = r % dim, half = rotated / 2;
    return within >= rotated ? r : r - within + 2 * (within % half) + within / half;
  }
};

/// One tensor of a file: its stage, its shape, and the source of its rows.
struct TensorSpec {
  std::uint32_t stage = 0;  // as in TensorEntry
  Role role = Role::attn_q;
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  /// Writes the row-major bytes of rows [begin, begin + n) in `format` to `out`, whose size is n * row_bytes(format,
  /// cols). Tiles are made of them later.
  std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out)> rows_of;
  /// Appends the runs that rows_of reads for these rows, and returns the origin. Empty: anywhere.
  std::function<RowsFrom(std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& runs)> runs_of = {};
  /// Checks rows that were copied from runs as rows_of would. Empty if runs_of never returns `stored` or `reordered`.
  std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<const std::byte> rows)> check = {};
  RotatedHeads heads = {};  // of rows that are `reordered`
};

struct FileSpec {
  Header header;                    // the plan fills in offsets, CRCs, sizes, quant and kFlagAligned
  std::vector<TensorSpec> tensors;  // in any order; the plan sorts them
  std::vector<MetaEntry> meta;
  std::vector<std::byte> tokenizer;  // the TOKN section; empty: none
  std::vector<float> rope_divisors;  // [head_dim / 2], the ROPE section; empty: none
  LayerTableBuilder layers;          // written as a LAYR section if a kind differs from that of header and meta
  std::vector<float> importance;     // [n_layers]; empty: not measured
  Compression compression = Compression::none;
  /// Least percentage that compression must save of a segment, and the savings must also exceed in_place_margin().
  /// Other segments are stored uncompressed. 0: any saving is enough.
  std::uint32_t least_saved = 0;
  std::uint32_t segment_bytes = 0;  // target raw size of a segment; 0: derived from the model's size
};

/// The front of a file is everything before its weights: header, directory, layer index and sections. Its beginning, up
/// to the end of SEGS, is the tables, and the remainder never changes. All functions except take_rest() are const and
/// may be called by several threads, each with its own Room, if the tensors' functions may.
class FilePlan {
 public:
  /// Plans a file whose segments are not compressed. Checks shapes and required tensors. Errors are those of reader.h.
  static Result<FilePlan> make(FileSpec spec);
  /// Plans the file of `size` bytes that begins with an earlier front. Takes the tensors of `spec` and nothing else of
  /// it. Returns the errors of reader.h, or bad_input if the tensors are not those of the front.
  static Result<FilePlan> restore(FileSpec spec, std::span<const std::byte> front, std::uint64_t size);

  const Header& header() const { return header_; }
  /// Returns the tensors in file order, as in TENS.
  std::span<const TensorEntry> tensors() const { return tensors_; }
  /// Returns the source of each of tensors().
  std::span<const TensorSpec> sources() const { return sources_; }
  /// Returns the segments in file order, as in SEGS. Checksums are those of restore()'s front, otherwise 0.
  std::span<const SegmentEntry> segments() const { return segments_; }
  std::uint64_t tables_size() const { return tables_size_; }
  std::uint64_t front_size() const { return front_size_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t raw_size() const { return raw_size_; }  // of all segments
  /// Returns the first offset from `at` on at which a segment may begin. An aligned file aligns the bytes after
  /// headers, any other file only the stages.
  std::uint64_t begin_of(std::uint32_t segment, std::uint64_t at) const;

  /// Returns the tables of a file of `size` bytes with these segments, whose offsets, stored sizes, compression and
  /// checksums may differ from the planned ones. Errors are those of reader.h.
  Result<std::vector<std::byte>> tables(std::span<const SegmentEntry> segments, std::uint64_t size) const;
  /// Returns the front's bytes after the tables, and forgets them. Empty after restore().
  std::vector<std::byte> take_rest() { return std::move(rest_); }

  /// Memory that reading needs. It grows to room_bytes() and then stays.
  struct Room {
    std::vector<std::byte> strip, part;
  };
  std::uint64_t room_bytes() const;
  /// Returns a room that does not grow.
  Room make_room() const;
  /// Writes bytes [begin, begin + out.size()) of a segment's raw bytes to `out`. They must be within the segment.
  /// Errors are those of rows_of.
  Status read(std::uint32_t segment, std::uint64_t begin, std::span<std::byte> out, Room& room) const;

  /// The rows of a matrix in a segment. The first is at byte `at` of the segment.
  struct Rows {
    std::uint32_t tensor = 0, begin = 0, n = 0;
    std::uint64_t at = 0;
  };
  /// Empty for a segment of vectors.
  std::optional<Rows> rows_of(std::uint32_t segment) const;
  /// Returns the index of the first tensor that begins in the segment, or of the matrix that it continues.
  std::uint32_t first_tensor(std::uint32_t segment) const;
  /// Writes the bytes around the data of a tensor in its first segment, whose raw bytes are `raw`: its header, or the
  /// flag byte after the final norm.
  void put_frame(std::uint32_t tensor, std::span<std::byte> raw) const;
  /// Arranges rows of a matrix, from the first row of a strip on, as its layout says. `data` begins with their
  /// row-major bytes and has room for whole strips.
  void arrange(std::uint32_t tensor, std::uint32_t n, std::span<std::byte> data, Room& room) const;
  /// Does the same with at most a strip of rows that are elsewhere. `out` has room for a whole strip of tiles.
  void arrange(std::uint32_t tensor, std::span<const std::byte* const> rows, std::span<std::byte> out) const;

 private:
  FilePlan() = default;
  void take_sources(FileSpec& spec);
  Status plan_tensors();
  Status plan_segments(const FileSpec& spec);
  std::uint32_t expert_rows_of(const LayerTable& table, const TensorEntry& tensor) const;
  void add_matrix(TensorEntry& tensor, std::uint64_t& raw, std::uint64_t target, std::uint64_t expert_rows);
  void place_segments();
  Status plan_sections(FileSpec& spec);
  Status match() const;
  std::span<const std::byte> content_of(std::uint32_t tag, std::span<const std::byte> front) const;
  std::vector<LayerEntry> layers_of(std::span<const SegmentEntry> segments, Header& header) const;
  Status check(const Header& header, std::uint64_t size, std::span<const LayerEntry> layers,
               std::span<const SegmentEntry> segments) const;
  Status fill_vectors(std::uint32_t segment, std::span<std::byte> raw) const;
  /// Returns the most bytes of Room::strip and Room::part.
  std::pair<std::uint64_t, std::uint64_t> room_sizes() const;
  Status fill_strips(std::uint32_t tensor, std::uint32_t begin, std::span<std::byte> data, Room& room) const;

  Header header_;
  std::vector<TensorSpec> sources_;
  std::vector<TensorEntry> tensors_;
  std::vector<SegmentEntry> segments_;
  std::vector<SectionEntry> sections_;
  std::vector<std::byte> meta_, layer_table_, rest_;
  std::vector<float> rope_divisors_, importance_;
  std::uint64_t tables_size_ = 0, front_size_ = 0, size_ = 0, raw_size_ = 0;
};

}  // namespace qsf
