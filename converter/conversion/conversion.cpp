#include "converter/conversion/conversion.h"

#include "converter/plan/type_notes.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/types/written_type.h"
#include "qsf/base/try.h"
#include "qsf/formats/format.h"

namespace qsf::convert {

Conversion::Conversion(const LoadedModel& model, std::unique_ptr<std::optional<OutputFile>> file, Writer writer,
                       const Summary& summary)
    : model_(&model), file_(std::move(file)), writer_(std::move(writer)), summary_(summary) {}

Result<Conversion> Conversion::begin(const LoadedModel& model, const Options& options, const std::string& path) {
  TypeNotes notes;
  QSF_LET(source, plan_file(model, options, &notes));
  Summary summary;
  for (const TensorSpec& tensor : source.tensors) {
    summary.weights += std::uint64_t{tensor.rows} * tensor.cols;
    summary.weight_bits += 8 * written_bytes(tensor);
  }
  if (model.files && model.files->contain(path)) {
    return make_error(ErrorCode::bad_argument, "{:.140} is one of the files that are read: it cannot be the output",
                      path);
  }
  // The first step checks the data that a reader will read back, and writes nothing.
  auto file = std::make_unique<std::optional<OutputFile>>();
  const FileSink sink{[to = file.get()](std::uint64_t offset, std::span<const std::byte> bytes) {
    return (*to)->write_at(offset, bytes);
  }};
  std::vector<std::string> warnings = notes.warnings();
  const auto first = [&]() -> Result<Writer> {
    if (options.gguf) {
      QSF_LET(writer, GgufWriter::plan(model, std::move(source), sink, options.gguf_file_type, warnings, open_gguf));
      return Writer(std::move(writer));
    }
    FileWriter writer(std::move(source), sink);
    QSF_TRY(writer.step());
    return Writer(std::move(writer));
  };
  QSF_LET(writer, first());
  QSF_LET(created, OutputFile::create(path));
  file->emplace(std::move(created));
  Conversion out(model, std::move(file), std::move(writer), summary);
  out.warnings_ = std::move(warnings);
  return out;
}

FileWriter::Progress Conversion::progress() const {
  return std::visit([](const auto& writer) { return writer.progress(); }, writer_);
}

Result<Conversion::Step> Conversion::step() {
  if (flushed_) {
    QSF_TRY((*file_)->commit());
    return Step::done;
  }
  QSF_LET(step, std::visit([](auto& writer) { return writer.step(); }, writer_));
  if (step == FileWriter::Step::working) return Step::working;
  if (model_->files) QSF_TRY(model_->files->unchanged());
  QSF_TRY((*file_)->flush());
  summary_.file_bytes = std::visit([](const auto& writer) { return writer.file_size(); }, writer_);
  flushed_ = true;
  return Step::working;
}

}  // namespace qsf::convert
