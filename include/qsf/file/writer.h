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
#include "qsf/file/file_plan.h"
#include "qsf/file/layout.h"

namespace qsf {

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

  FileWriter(FileSpec spec, FileSink sink);
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
inline Result<std::uint64_t> write_file(FileSpec spec, const FileSink& sink, const WriteProgress& progress) {
  FileWriter writer(std::move(spec), sink);
  for (FileWriter::Progress shown;;) {
    QSF_LET(step, writer.step());
    if (step == FileWriter::Step::done) return writer.file_size();
    if (!progress || writer.progress().done == shown.done) continue;
    shown = writer.progress();
    progress(shown.done, shown.total);
  }
}

}  // namespace qsf
