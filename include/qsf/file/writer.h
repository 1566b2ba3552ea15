// Writing QSF, for converters: this part allocates. Weights are given row run by row run, so that a model larger than
// memory can be written.
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

/// One tensor to write: its place, its shape, and where its rows come from.
struct TensorSource {
  std::uint32_t section = 0;  // as in TensorEntry
  Role role = Role::attn_q;
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  /// Row-major bytes of rows [begin, begin + n) in `format`: out.size() == n * row_bytes(format, cols). The writer
  /// tiles.
  std::function<Status(std::uint32_t begin, std::uint32_t n, std::span<std::byte> out)> rows_of;
};

struct FileSource {
  Header header;                      // offsets, CRCs, sizes and quant are filled in by the writer, as is kFlagAligned
  std::vector<TensorSource> tensors;  // any order; the writer puts them in the file's
  std::vector<MetaEntry> meta;
  std::vector<std::byte> tokenizer;  // a TOKN section, empty for none
  std::vector<float> rope_divisors;  // a ROPE section [head_dim / 2], empty for none
  LayerTableSource layers;           // a LAYR section where layers are not all what header and meta say
  std::vector<float> importance;     // of each layer, empty where it was not measured
  Compression compression = Compression::none;
  std::uint32_t least_saved = 0;    // percent of a segment, and the room to decompress it in place, that must be saved,
                                    // else it is stored as it is
  std::uint32_t segment_bytes = 0;  // target raw size of a segment; 0 chooses from the model's size
};

/// Compresses to less than raw.size() bytes of `out`, which is as large, and gives how many; 0 where that does not go.
std::uint32_t compress(Compression compression, std::span<const std::byte> raw, std::span<std::byte> out);

/// Where bytes go. In the end every byte up to the size has been written; the header comes last, so that what was cut
/// off while it was written is no QSF file.
struct FileSink {
  std::function<Status(std::uint64_t offset, std::span<const std::byte> bytes)> write_at;
};

/// Writes a file piece by piece. Header and tables, known in size from the start, come first in the file, so that a
/// reader has them with its first range. Segments that do not shrink are stored uncompressed.
class FileWriter {
 public:
  enum class Step : std::uint8_t { working, done };

  FileWriter(FileSource source, FileSink sink);
  FileWriter(FileWriter&&) noexcept;
  ~FileWriter();

  /// One piece of work: the plan, about one segment, or the tables. Shapes and needed tensors are checked before the
  /// first byte is written; errors are those of reader.h, and what rows_of and write_at give. After an error or done it
  /// gives the same again.
  Result<Step> step();

  struct Progress {
    std::uint64_t done = 0, total = 0;  // bytes of raw weights; the total is known after the first step
  };
  Progress progress() const;
  std::uint64_t file_size() const;  // known when done

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

/// bytes of weights written so far, and in all
using WriteProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// All steps; gives the file's size.
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
