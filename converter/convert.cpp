#include "converter/convert.h"

#include "converter/output_file.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

Result<Summary> convert_file(const ModelSource& model, const Options& options, const std::string& path,
                             const WriteProgress& progress) {
  const Result<FileSource> source = plan_file(model, options);
  if (!source) return source.error();
  Summary summary;
  for (const TensorSource& tensor : source->tensors) {
    summary.weights += std::uint64_t{tensor.rows} * tensor.cols;
    summary.weight_bits += 8 * tensor_bytes(*find_format(tensor.format), tensor.layout, tensor.rows, tensor.cols);
  }
  Result<OutputFile> file = OutputFile::create(path);
  if (!file) return file.error();
  const FileSink sink{
      [&](std::uint64_t offset, std::span<const std::byte> bytes) { return file->write_at(offset, bytes); }};
  const Result<std::uint64_t> size = write_file(*source, sink, progress);
  if (!size) return size.error();
  QSF_TRY(file->commit());
  summary.file_bytes = *size;
  return summary;
}

}  // namespace qsf::convert
