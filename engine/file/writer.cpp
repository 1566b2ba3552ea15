#include "qsf/file/writer.h"

#include <optional>

#include "file/fields.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

using Bytes = std::vector<std::byte>;

/// Writes a file: plans its tables, writes the weights, then writes the tables with the sizes and checksums found.
class Writer {
 public:
  Writer(FileSpec spec, FileSink sink) : spec_(std::move(spec)), sink_(std::move(sink)) {}

  Result<FileWriter::Step> step();
  FileWriter::Progress progress() const { return {raw_done_, plan_ ? plan_->raw_size() : 0}; }
  std::uint64_t size() const { return at_; }

 private:
  Status plan();
  Status next();
  Status write_next_segment();
  Status write_segment(SegmentEntry& segment, const Bytes& raw);
  bool worth_it(std::uint64_t raw, std::uint64_t made) const;
  Status write_embedding_start(Bytes raw);
  Status write_front();

  FileSpec spec_;  // its tensors belong to the plan
  FileSink sink_;
  std::optional<FilePlan> plan_;
  std::vector<SegmentEntry> segments_;  // as they are written
  std::uint64_t at_ = 0;                // offset of the next weights
  std::uint64_t raw_done_ = 0;
  Status status_;
  bool finished_ = false;
  std::uint32_t next_segment_ = 0;
  FilePlan::Room room_;
  Bytes raw_;              // the segment that is being filled
  Bytes compressed_;       // a segment in its stored form
  Bytes embedding_start_;  // the first segment, kept until its header is known
};

/// Whether compression saves enough. Decompression in place needs a larger buffer; if little is saved, more weights can
/// be pinned without compression.
bool Writer::worth_it(std::uint64_t raw, std::uint64_t made) const {
  const std::uint64_t saved = raw - made;
  return spec_.least_saved == 0 || (saved * 100 >= raw * spec_.least_saved &&
                                    saved > in_place_margin(spec_.compression, static_cast<std::uint32_t>(raw),
                                                            static_cast<std::uint32_t>(made)));
}

Status Writer::write_segment(SegmentEntry& segment, const Bytes& raw) {
  std::span<const std::byte> stored = raw;
  const bool embedding_start = segment.stage == 0 && segment.raw_begin == 0;
  if (spec_.compression != Compression::none && !embedding_start) {
    compressed_.resize(raw.size());
    const std::uint64_t made = compress(spec_.compression, raw, compressed_);
    if (made > 0 && worth_it(raw.size(), made)) {
      stored = std::span<const std::byte>(compressed_).first(static_cast<std::size_t>(made));
      segment.compression = spec_.compression;
    }
  }
  segment.offset = at_;
  segment.stored_size = static_cast<std::uint32_t>(stored.size());
  segment.crc = crc32(stored);
  at_ += stored.size();
  raw_done_ += raw.size();
  return sink_.write_at(segment.offset, stored);
}

/// Writes the first segment again. The embedding's header states its stored size, which is known only now.
Status Writer::write_embedding_start(Bytes raw) {
  EmbeddingHeader header = decode<EmbeddingHeader>(raw.data());
  std::uint64_t stored = 0;
  for (std::uint32_t i = 0; i < plan_->tensors()[0].n_segments; ++i) stored += segments_[i].stored_size;
  header.stored_size = static_cast<std::uint32_t>(stored - kTensorHeaderSize);
  encode(header, raw.data());
  segments_[0].crc = crc32(raw);
  return sink_.write_at(segments_[0].offset, raw);
}

Status Writer::write_next_segment() {
  const std::uint32_t i = next_segment_++;
  SegmentEntry& segment = segments_[i];
  const Bytes zeros(plan_->begin_of(i, at_) - at_);
  if (!zeros.empty()) QSF_TRY(sink_.write_at(at_, zeros));
  at_ += zeros.size();
  raw_.resize(segment.raw_size);
  QSF_TRY(plan_->read(i, 0, raw_, room_));
  QSF_TRY(write_segment(segment, raw_));
  if (i == 0) embedding_start_ = raw_;
  return {};
}

/// Writes everything before the weights, and the header last.
Status Writer::write_front() {
  QSF_LET(tables, plan_->tables(segments_, at_));
  const Bytes rest = plan_->take_rest();
  QSF_TRY(sink_.write_at(kHeaderSize, std::span<const std::byte>(tables).subspan(kHeaderSize)));
  if (!rest.empty()) QSF_TRY(sink_.write_at(plan_->tables_size(), rest));
  return sink_.write_at(0, std::span<const std::byte>(tables).first(kHeaderSize));
}

Status Writer::plan() {
  if (!can_decompress(spec_.compression)) {
    return make_error(ErrorCode::unsupported, "compression type {} cannot be written", spec_.compression);
  }
  const auto [compression, least_saved] = std::pair{spec_.compression, spec_.least_saved};
  QSF_LET(plan, FilePlan::make(std::move(spec_)));
  spec_ = {};
  spec_.compression = compression;
  spec_.least_saved = least_saved;
  segments_.assign(plan.segments().begin(), plan.segments().end());
  at_ = plan.front_size();
  plan_.emplace(std::move(plan));
  return {};
}

Status Writer::next() {
  if (!plan_) return plan();
  if (next_segment_ < segments_.size()) return write_next_segment();
  QSF_TRY(write_embedding_start(std::move(embedding_start_)));
  QSF_TRY(write_front());
  finished_ = true;
  return {};
}

Result<FileWriter::Step> Writer::step() {
  if (status_ && !finished_) status_ = next();
  if (!status_) return status_.error();
  return finished_ ? FileWriter::Step::done : FileWriter::Step::working;
}

}  // namespace

struct FileWriter::Work {
  Writer writer;
};

FileWriter::FileWriter(FileSpec spec, FileSink sink)
    : work_(std::make_unique<Work>(Writer(std::move(spec), std::move(sink)))) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;
Result<FileWriter::Step> FileWriter::step() { return work_->writer.step(); }
FileWriter::Progress FileWriter::progress() const { return work_->writer.progress(); }
std::uint64_t FileWriter::file_size() const { return work_->writer.size(); }

}  // namespace qsf
