#include "qsf/file/writer.h"

#include <algorithm>
#include <cmath>

#include "base/arena.h"
#include "file/encode.h"
#include "file/fields.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kLeastSegment = 64 << 10;
constexpr std::uint64_t kMostSegment = 1 << 20;
constexpr std::uint64_t kSegmentsAimedAt = 64;
constexpr std::uint64_t kLeastAligned = 256 << 10;  // several smaller segments share one read

const Format* format_of(FormatId id) {
  const int index = format_index(id);
  return index < 0 ? nullptr : &kFormats[static_cast<std::size_t>(index)];
}

/// Writes a file: plans its tables, writes the weights, then writes the tables with the sizes and checksums found.
class Writer {
 public:
  Writer(FileSource source, FileSink sink)
      : source_(std::move(source)), sink_(std::move(sink)), header_(source_.header) {}

  Result<FileWriter::Step> step();
  FileWriter::Progress progress() const { return {raw_done_, raw_total_}; }
  std::uint64_t size() const { return at_; }

 private:
  Status plan_tensors();
  Status plan_segments();
  std::uint32_t expert_rows_of(const TensorEntry& tensor) const;
  void add_matrix(TensorEntry& tensor, std::uint64_t& raw, std::uint64_t target, std::uint64_t expert_rows);
  void place_segments();
  Status plan_sections();
  void fill_layers();
  Status check() const;
  Status plan();
  Status next();
  Status write_next_segment();
  Status fill_vectors(std::size_t first_tensor, Bytes& raw) const;
  Status fill_matrix(std::size_t tensor, std::uint32_t segment, Bytes& raw);
  Status write_segment(SegmentEntry& segment, const Bytes& raw);
  bool worth_it(std::uint64_t raw, std::uint32_t made) const;
  Status write_embedding_start(Bytes raw);
  Status write_front();
  std::uint64_t begin_of(std::uint32_t segment) const;
  std::uint64_t front_size() const;

  FileSource source_;
  FileSink sink_;
  Header header_;
  std::vector<const TensorSource*> sources_;  // in file order, as tensors_
  std::vector<TensorEntry> tensors_;
  std::vector<SegmentEntry> segments_;
  std::vector<LayerEntry> layers_;
  std::vector<SectionEntry> sections_;
  Bytes meta_, layer_table_;
  std::vector<Bytes> contents_;  // of sections_; the tables' contents are filled in last
  std::uint64_t at_ = 0;         // offset of the next weights
  std::uint64_t raw_done_ = 0;
  std::uint64_t raw_total_ = 0;
  Status status_;
  bool planned_ = false, finished_ = false;
  std::uint32_t next_segment_ = 0;
  std::size_t next_tensor_ = 0;
  Bytes raw_;              // the segment that is being filled
  Bytes rows_;             // row-major rows before they are tiled
  Bytes compressed_;       // a segment in its stored form
  Bytes embedding_start_;  // the first segment, kept until its header is known
};

/// Returns the sort key of a tensor in its stage: vectors before matrices, each in the order of kRoleRules.
std::uint32_t order(const TensorSource& t) {
  const std::size_t index = role_index(t.role);
  return (index != kNoRole && rule_of(t.role).matrix ? 256 : 0) + static_cast<std::uint32_t>(index);
}

Status Writer::plan_tensors() {
  for (const TensorSource& t : source_.tensors) sources_.push_back(&t);
  std::ranges::sort(sources_, [](const TensorSource* a, const TensorSource* b) {
    return a->section != b->section ? a->section < b->section : order(*a) < order(*b);
  });
  CommonFormat formats;
  for (const TensorSource* t : sources_) {
    if (role_index(t->role) == kNoRole || format_of(t->format) == nullptr) {
      return make_error(ErrorCode::unsupported, "tensor with role {} and type {} cannot be written", t->role,
                        t->format);
    }
    TensorEntry entry;
    entry.section = t->section;
    entry.role = t->role;
    entry.format = t->format;
    entry.layout = t->layout;
    entry.rows = t->rows;
    entry.cols = t->cols;
    tensors_.push_back(entry);
    if (rule_of(t->role).matrix) formats.add(t->format);
    raw_total_ += tensor_bytes(*format_of(t->format), t->layout, t->rows, t->cols);
  }
  header_.quant = static_cast<std::uint8_t>(formats.get());
  return {};
}

/// Cuts a matrix into segments of at most `target` bytes, but at least one strip. If expert_rows is not 0, no segment
/// has rows of two experts.
void Writer::add_matrix(TensorEntry& tensor, std::uint64_t& raw, std::uint64_t target, std::uint64_t expert_rows) {
  const Format& format = *format_of(tensor.format);
  const std::uint64_t strip = std::max<std::uint64_t>(1, strip_rows(tensor.layout) * row_bytes(format, tensor.cols));
  const std::uint64_t strips = tensor_bytes(format, tensor.layout, tensor.rows, tensor.cols) / strip;
  const std::uint64_t most = std::max<std::uint64_t>(1, target / strip);
  const std::uint64_t runs = expert_rows == 0 ? 1 : std::max<std::uint64_t>(1, tensor.rows / expert_rows);
  const std::uint64_t run = strips / runs;
  const std::uint64_t n = std::max<std::uint64_t>(1, (run + most - 1) / most);  // segments of a run
  tensor.first_segment = static_cast<std::uint32_t>(segments_.size());
  tensor.n_segments = static_cast<std::uint32_t>(n * runs);
  tensor.raw_offset = raw + kTensorHeaderSize;
  for (std::uint64_t i = 0; i < n * runs; ++i) {  // shares differ by one strip at most
    const std::uint64_t share = run * (i % n + 1) / n - run * (i % n) / n;
    SegmentEntry segment;
    segment.section = tensor.section;
    segment.raw_begin = static_cast<std::uint32_t>(raw);
    segment.raw_size = static_cast<std::uint32_t>(share * strip + (i == 0 ? kTensorHeaderSize : 0));
    raw += segment.raw_size;
    segments_.push_back(segment);
  }
}

/// Returns the rows of one expert in a matrix of all experts of a layer; 0 for any other matrix.
std::uint32_t Writer::expert_rows_of(const TensorEntry& tensor) const {
  const LayerTable table = source_.layers.view();
  const bool known = table.of_layer.size() == header_.n_layers && place_of(header_, tensor.section) == Place::layer;
  return known ? expert_share(header_, kind_of_section(header_, table, tensor.section), rule_of(tensor.role)) : 0;
}

Status Writer::plan_segments() {
  const std::uint64_t target = source_.segment_bytes != 0
                                   ? source_.segment_bytes
                                   : std::clamp(raw_total_ / kSegmentsAimedAt, kLeastSegment, kMostSegment);
  if (target >= kLeastAligned) header_.flags |= kFlagAligned;
  for (std::size_t i = 0; i < tensors_.size();) {
    const std::uint32_t section = tensors_[i].section;
    const std::size_t first_segment = segments_.size();
    std::uint64_t raw = 0;
    for (; i < tensors_.size() && tensors_[i].section == section; ++i) {
      TensorEntry& t = tensors_[i];
      const std::uint64_t size = tensor_bytes(*format_of(t.format), t.layout, t.rows, t.cols) + trailer_bytes(t.role);
      if (size > UINT32_MAX - header_bytes(t.role) || raw > UINT32_MAX - header_bytes(t.role) - size) {
        return make_error(ErrorCode::unsupported, "section {} would have more than 2^32 - 1 raw bytes", section);
      }
      if (rule_of(t.role).matrix) {
        add_matrix(t, raw, target, expert_rows_of(t));
        continue;
      }
      if (segments_.size() == first_segment) segments_.push_back({.section = section, .flags = kSegmentVectors});
      t.first_segment = static_cast<std::uint32_t>(first_segment);
      t.n_segments = 1;
      t.raw_offset = raw + header_bytes(t.role);
      raw = t.raw_offset + size;
      segments_.back().raw_size = static_cast<std::uint32_t>(raw);
    }
  }
  raw_total_ = 0;
  std::uint32_t next_section = 0;
  for (const SegmentEntry& s : segments_) {
    raw_total_ += s.raw_size;
    if (s.section == next_section) ++next_section;
  }
  const bool may_end = source_.layers.model.headless != 0 && next_section + 1 == n_weight_sections(header_);
  if (next_section < n_weight_sections(header_) && !may_end) {
    return make_error(ErrorCode::bad_tensor, "section {} has no tensors", next_section);
  }
  return {};
}

/// Returns the first offset from `at_` on at which the segment may begin. An aligned file aligns the bytes after
/// headers, any other only the stages.
std::uint64_t Writer::begin_of(std::uint32_t segment) const {
  const SegmentEntry& s = segments_[segment];
  if ((header_.flags & kFlagAligned) == 0) {
    return segment > 0 && segments_[segment - 1].section != s.section ? align_up(at_) : at_;
  }
  const auto t = std::ranges::lower_bound(tensors_, segment, {}, &TensorEntry::first_segment);
  const bool begins = t != tensors_.end() && t->first_segment == segment && (s.flags & kSegmentVectors) == 0;
  const std::uint64_t header = begins ? kTensorHeaderSize : 0;
  return align_up(at_ + header) - header;
}

/// Sets the offsets that the segments have if nothing is compressed.
void Writer::place_segments() {
  at_ = front_size();
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    SegmentEntry& s = segments_[i];
    s.offset = at_ = begin_of(i);
    s.stored_size = s.raw_size;
    at_ += s.raw_size;
  }
}

std::uint64_t Writer::front_size() const {
  const SectionEntry& last = sections_.back();
  return align_up(last.offset + last.size);
}

/// Places the directory, the layer index and the sections after the header. The index and the sections are 8-byte
/// aligned.
Status Writer::plan_sections() {
  QSF_LET(meta, encode_meta(source_.meta));
  meta_ = meta;
  QSF_LET(usual, default_kind(header_, meta_));
  layer_table_ = encode_layer_table(source_.layers.view(), usual);
  Bytes rope;
  for (const float divisor : source_.rope_divisors) append(rope, divisor);
  const std::size_t n_segments = segments_.size();
  const struct {
    std::uint32_t tag;
    bool needed;
    Bytes bytes;
  } wanted[] = {{kTagTensors, true, Bytes(tensors_.size() * kTensorEntrySize)},
                {kTagSegments, true, Bytes(n_segments * kSegmentEntrySize)},
                {kTagMeta, true, meta_},
                {kTagRope, true, std::move(rope)},
                {kTagLayers, true, layer_table_},
                {kTagTokenizer, false, source_.tokenizer}};
  sections_.clear();
  contents_.clear();
  header_.directory_offset = kHeaderSize;
  header_.n_sections =
      static_cast<std::uint32_t>(std::ranges::count_if(wanted, [](auto& w) { return !w.bytes.empty(); }));
  header_.layer_index_offset = align_up(kHeaderSize + std::uint64_t{header_.n_sections} * kSectionEntrySize, 8);
  std::uint64_t at = header_.layer_index_offset + std::uint64_t{header_.n_layers} * kLayerEntrySize;
  for (const auto& w : wanted) {
    if (w.bytes.empty()) continue;
    if (w.bytes.size() > UINT32_MAX) {
      return make_error(ErrorCode::unsupported, "section {} would have {} bytes, 2^32 - 1 is the most",
                        TagName(w.tag).text, w.bytes.size());
    }
    SectionEntry entry;
    entry.tag = w.tag;
    entry.flags = w.needed ? kSectionNeeded : 0;
    entry.offset = align_up(at, 8);
    entry.size = static_cast<std::uint32_t>(w.bytes.size());
    at = entry.offset + entry.size;
    sections_.push_back(entry);
    contents_.push_back(w.bytes);
  }
  return {};
}

/// Fills in the layer index and the header's offsets from the segments.
void Writer::fill_layers() {
  layers_.assign(header_.n_layers, {});
  std::vector<CommonFormat> formats(header_.n_layers);
  for (const TensorEntry& t : tensors_) {
    if (t.section == 0 || t.section > header_.n_layers) continue;
    ++layers_[t.section - 1].n_tensors;
    if (rule_of(t.role).matrix) formats[t.section - 1].add(t.format);
  }
  std::uint32_t section = UINT32_MAX;
  for (const SegmentEntry& s : segments_) {
    const bool first = s.section != section;
    section = s.section;
    if (section == 0 || section > header_.n_layers) {
      if (first) (section == 0 ? header_.embedding_offset : header_.final_offset) = s.offset;
      continue;
    }
    LayerEntry& layer = layers_[section - 1];
    if (first) layer.offset = s.offset;
    layer.stored_size += s.stored_size;
    layer.raw_size += s.raw_size;
    layer.crc = crc32_combine(layer.crc, s.crc, s.stored_size);
    if (s.compression != Compression::none) layer.compression = s.compression;
  }
  // A model without a head may have an empty final stage.
  if (section == header_.n_layers) header_.final_offset = layers_.back().offset;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].quant = static_cast<std::uint8_t>(formats[i].get());
    if (i < source_.importance.size()) layers_[i].importance = source_.importance[i];
  }
  header_.file_size_low = static_cast<std::uint32_t>(at_);
}

/// Returns the encoded entries, `size` bytes each.
template <class Entry>
Bytes encode_all(std::span<const Entry> entries, std::size_t size) {
  Bytes out(entries.size() * size);
  for (std::size_t i = 0; i < entries.size(); ++i) encode(entries[i], out.data() + i * size);
  return out;
}

Bytes encode_header(const Header& header) {
  Bytes out(kHeaderSize);
  store_le(out.data(), kMagic);
  store_le(out.data() + 4, kVersion);
  store_le(out.data() + 8, kHeaderSize);
  encode(header, out.data());
  store_le(out.data() + kHeaderCrcAt, crc32(std::span(out).first(kHeaderCrcAt)));
  store_le(out.data() + kExtensionCrcAt, crc32(std::span(out).subspan(kExtensionAt, kExtensionCrcAt - kExtensionAt)));
  return out;
}

Status Writer::check() const {
  QSF_LET(header, read_header(encode_header(header_), at_));
  std::vector<TensorEntry> tensors(tensors_.size());
  QSF_TRY(read_tensors(header, encode_all<TensorEntry>(tensors_, kTensorEntrySize), tensors));
  std::vector<SegmentEntry> segments(segments_.size());
  QSF_TRY(read_segments(header, encode_all<SegmentEntry>(segments_, kSegmentEntrySize), at_, segments));
  if (!source_.rope_divisors.empty()) {
    std::vector<float> divisors(source_.rope_divisors.size());
    QSF_TRY(read_rope(header, std::as_bytes(std::span(source_.rope_divisors)), divisors));
  }
  QSF_LET(table, load_layer_table(header, meta_, layer_table_));
  QSF_TRY(check_rope_divisors(table.view(), source_.rope_divisors.size()));
  return check_tables(header, table.view(), layers_, tensors, segments);
}

void encode_tensor_header(const TensorEntry& t, std::byte* at) {
  if (t.role == Role::token_embd) {
    encode(EmbeddingHeader{t.format, t.layout, 0, 0, t.rows, t.cols}, at);
  } else {
    encode(TensorHeader{static_cast<std::uint32_t>(t.role), t.rows, t.cols, t.format, t.layout, 0}, at);
  }
}

/// Fills in the tensors from `first` on that are in the same segment.
Status Writer::fill_vectors(std::size_t first, Bytes& raw) const {
  for (std::size_t i = first; i < tensors_.size() && tensors_[i].first_segment == tensors_[first].first_segment; ++i) {
    const TensorEntry& t = tensors_[i];
    std::byte* data = raw.data() + t.raw_offset;
    if (header_bytes(t.role) > 0) encode_tensor_header(t, data - kTensorHeaderSize);
    const std::uint64_t size = row_bytes(*format_of(t.format), t.cols);
    QSF_TRY(sources_[i]->rows_of(0, 1, {data, static_cast<std::size_t>(size)}));
    if (trailer_bytes(t.role) > 0) data[size] = (header_.flags & kFlagTied) != 0 ? kTiedByte : kSeparateByte;
  }
  return {};
}

Status Writer::fill_matrix(std::size_t tensor, std::uint32_t segment, Bytes& raw) {
  const TensorEntry& t = tensors_[tensor];
  const Format& format = *format_of(t.format);
  const std::uint32_t strip = strip_rows(t.layout);
  const std::uint64_t row = row_bytes(format, t.cols);
  std::span<std::byte> data(raw);
  if (segment == t.first_segment) {
    encode_tensor_header(t, raw.data());
    data = data.subspan(kTensorHeaderSize);
  }
  const std::uint64_t at = segments_[segment].raw_begin + (raw.size() - data.size()) - t.raw_offset;
  const auto begin = static_cast<std::uint32_t>(at / row);
  const std::uint32_t n = std::min(static_cast<std::uint32_t>(data.size() / row), t.rows - begin);  // without padding
  const auto& rows_of = sources_[tensor]->rows_of;
  if (t.layout == Layout::rows) return rows_of(begin, n, data);
  rows_.resize(n * row);
  QSF_TRY(rows_of(begin, n, rows_));
  for (std::uint32_t r = 0; r < n; r += strip) {
    const std::uint32_t held = std::min(strip, n - r);
    tile_strip(format, std::span<const std::byte>(rows_).subspan(r * row, held * row), held, t.cols,
               data.subspan(r * row, strip * row));
  }
  return {};
}

/// Whether compression saves enough. Decompression in place needs a larger buffer; if little is saved, more weights can
/// be pinned without compression.
bool Writer::worth_it(std::uint64_t raw, std::uint32_t made) const {
  const std::uint64_t saved = raw - made;
  return source_.least_saved == 0 ||
         (saved * 100 >= raw * source_.least_saved &&
          saved > in_place_margin(source_.compression, static_cast<std::uint32_t>(raw), made));
}

Status Writer::write_segment(SegmentEntry& segment, const Bytes& raw) {
  std::span<const std::byte> stored = raw;
  segment.compression = Compression::none;
  const bool embedding_start = segment.section == 0 && segment.raw_begin == 0;
  if (source_.compression != Compression::none && !embedding_start) {
    compressed_.resize(raw.size());
    const std::uint64_t made = compress(source_.compression, raw, compressed_);
    if (made > 0 && worth_it(raw.size(), made)) {
      stored = std::span<const std::byte>(compressed_).first(static_cast<std::size_t>(made));
      segment.compression = source_.compression;
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
  for (std::uint32_t i = 0; i < tensors_[0].n_segments; ++i) stored += segments_[i].stored_size;
  header.stored_size = static_cast<std::uint32_t>(stored - kTensorHeaderSize);
  encode(header, raw.data());
  segments_[0].crc = crc32(raw);
  return sink_.write_at(segments_[0].offset, raw);
}

Status Writer::write_next_segment() {
  const std::uint32_t i = next_segment_++;
  SegmentEntry& segment = segments_[i];
  const Bytes zeros(begin_of(i) - at_);
  if (!zeros.empty()) QSF_TRY(sink_.write_at(at_, zeros));
  at_ += zeros.size();
  raw_.assign(segment.raw_size, std::byte{0});
  while (tensors_[next_tensor_].first_segment + tensors_[next_tensor_].n_segments <= i) ++next_tensor_;
  const bool vectors = (segment.flags & kSegmentVectors) != 0;
  QSF_TRY(vectors ? fill_vectors(next_tensor_, raw_) : fill_matrix(next_tensor_, i, raw_));
  QSF_TRY(write_segment(segment, raw_));
  if (i == 0) embedding_start_ = raw_;
  return {};
}

/// Writes everything before the weights, and the header last.
Status Writer::write_front() {
  contents_[0] = encode_all<TensorEntry>(tensors_, kTensorEntrySize);
  contents_[1] = encode_all<SegmentEntry>(segments_, kSegmentEntrySize);
  Bytes front(front_size());
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    sections_[i].crc = crc32(contents_[i]);
    std::ranges::copy(contents_[i], front.begin() + static_cast<std::ptrdiff_t>(sections_[i].offset));
  }
  const Bytes directory = encode_all<SectionEntry>(sections_, kSectionEntrySize);
  const Bytes index = encode_all<LayerEntry>(layers_, kLayerEntrySize);
  header_.directory_crc = crc32(directory);
  header_.layer_index_crc = crc32(index);
  std::ranges::copy(directory, front.begin() + static_cast<std::ptrdiff_t>(header_.directory_offset));
  std::ranges::copy(index, front.begin() + static_cast<std::ptrdiff_t>(header_.layer_index_offset));
  QSF_TRY(check());
  QSF_TRY(sink_.write_at(kHeaderSize, std::span<const std::byte>(front).subspan(kHeaderSize)));
  return sink_.write_at(0, encode_header(header_));
}

Status Writer::plan() {
  if (!can_decompress(source_.compression)) {
    return make_error(ErrorCode::unsupported, "compression type {} cannot be written", source_.compression);
  }
  if (source_.segment_bytes > kMaxSegmentRaw) {
    return make_error(ErrorCode::bad_argument, "segment size is {}, {} is the most", source_.segment_bytes,
                      kMaxSegmentRaw);
  }
  if (source_.header.n_layers > kMaxLayers) {
    return make_error(ErrorCode::bad_argument, "n_layers is {}, {} is the most", source_.header.n_layers, kMaxLayers);
  }
  QSF_TRY(plan_tensors());
  QSF_TRY(plan_segments());
  QSF_TRY(plan_sections());
  place_segments();
  fill_layers();
  QSF_TRY(check());
  at_ = front_size();
  planned_ = true;
  return {};
}

Status Writer::next() {
  if (!planned_) return plan();
  if (next_segment_ < segments_.size()) return write_next_segment();
  QSF_TRY(write_embedding_start(std::move(embedding_start_)));
  fill_layers();
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

FileWriter::FileWriter(FileSource source, FileSink sink)
    : work_(std::make_unique<Work>(Writer(std::move(source), std::move(sink)))) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;
Result<FileWriter::Step> FileWriter::step() { return work_->writer.step(); }
FileWriter::Progress FileWriter::progress() const { return work_->writer.progress(); }
std::uint64_t FileWriter::file_size() const { return work_->writer.size(); }

}  // namespace qsf
