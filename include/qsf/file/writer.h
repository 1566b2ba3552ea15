// The writer of QSF files, for converters. It allocates. It asks for weights in runs of rows, so that a model can be
// larger than memory.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/base/try.h"
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

/// One tensor to write: its stage, its shape, and the source of its rows.
struct TensorSource {
  std::uint32_t section = 0;  // as in TensorEntry
  Role role = Role::attn_q;
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  /// Writes the row-major bytes of rows [begin, begin + n) in `format` to `out`, whose size is n * row_bytes(format,
  /// cols). The writer makes tiles of them.
  std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out)> rows_of;
};

struct FileSource {
  Header header;                      // the writer fills in offsets, CRCs, sizes, quant and kFlagAligned
  std::vector<TensorSource> tensors;  // in any order; the writer sorts them
  std::vector<MetaEntry> meta;
  std::vector<std::byte> tokenizer;  // the TOKN section; empty: none
  std::vector<float> rope_divisors;  // [head_dim / 2], the ROPE section; empty: none
  LayerTableSource layers;           // written as a LAYR section if a kind differs from that of header and meta
  std::vector<float> importance;     // [n_layers]; empty: not measured
  Compression compression = Compression::none;
  /// Least percentage that compression must save of a segment, and the savings must also exceed in_place_margin().
  /// Other segments are stored uncompressed. 0: any saving is enough.
  std::uint32_t least_saved = 0;
  std::uint32_t segment_bytes = 0;  // target raw size of a segment; 0: derived from the model's size
};

/// Compresses `raw` to fewer bytes and returns their number, or 0 if that is not possible. out.size() must be at least
/// raw.size().
std::uint32_t compress(Compression compression, std::span<const std::byte> raw, std::span<std::byte> out);

/// The destination of bytes. Every byte up to the file's size is written. The header is written last, so that an
/// interrupted file is not a QSF file.
struct FileSink {
  std::function<Status(std::uint64_t offset, std::span<const std::byte> bytes)> write_at;
};

/// Writes a file step by step. Header and tables come first in the file, so that a reader gets them in its first range.
/// Segments that do not shrink are stored uncompressed.
class FileWriter {
 public:
  enum class Step : std::uint8_t { working, done };

  FileWriter(FileSource source, FileSink sink);
  FileWriter(FileWriter&&) noexcept;
  ~FileWriter();

  /// Does one piece of work: the plan, about one segment, or the tables. Checks shapes and required tensors before it
  /// writes the first byte. Errors are those of reader.h, rows_of and write_at. After an error or done, returns the
  /// same again.
  Result<Step> step();

  struct Progress {
    std::uint64_t done = 0, total = 0;  // bytes of raw weights; the total is known after the first step
  };
  Progress progress() const;
  std::uint64_t file_size() const;  // valid after Step::done

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

/// Takes the bytes of weights that are written so far, and of all weights.
using WriteProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Calls every step. Returns the file's size in bytes.
inline Result<std::uint64_t> write_file(FileSource source, const FileSink& sink, const WriteProgress& progress) {
  FileWriter writer(std::move(source), sink);
  for (FileWriter::Progress shown;;) {
    QSF_LET(step, writer.step());
    if (step == FileWriter::Step::done) return writer.file_size();
    if (!progress || writer.progress().done == shown.done) continue;
    shown = writer.progress();
    progress(shown.done, shown.total);
  }
}

}  // namespace qsf
