#include "qsf/file/file_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "file/common_format.h"
#include "file/encode.h"
#include "file/fields.h"
#include "qsf/base/align.h"
#include "qsf/base/checksum.h"
#include "qsf/base/heap_sort.h"
#include "qsf/base/try.h"
#include "qsf/file/roles.h"

namespace qsf {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kLeastSegment = 64 << 10;
constexpr std::uint64_t kMostSegment = 1 << 20;
constexpr std::uint64_t kSegmentsAimedAt = 64;
constexpr std::uint64_t kLeastAligned = 256 << 10;  // several smaller segments share one read

/// Returns the sort key of a tensor in its stage: vectors before matrices, each in the order of kRoleRules.
std::uint32_t order(const TensorSpec& t) {
  const std::size_t index = role_index(t.role);
  return (index != kNoRole && rule_of(t.role).matrix ? 256 : 0) + static_cast<std::uint32_t>(index);
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

void copy_to(Bytes& to, std::uint64_t at, std::span<const std::byte> bytes) {
  std::ranges::copy(bytes, to.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

Result<FilePlan> FilePlan::make(FileSpec spec) {
  if (spec.segment_bytes > kMaxSegmentRaw) {
    return make_error(ErrorCode::bad_argument, "segment size is {}, {} is the most", spec.segment_bytes,
                      kMaxSegmentRaw);
  }
  if (spec.header.n_layers > kMaxLayers) {
    return make_error(ErrorCode::bad_argument, "n_layers is {}, {} is the most", spec.header.n_layers, kMaxLayers);
  }
  FilePlan plan;
  plan.header_ = spec.header;
  plan.take_sources(spec);
  QSF_TRY(plan.plan_tensors());
  QSF_TRY(plan.plan_segments(spec));
  QSF_TRY(plan.plan_sections(spec));
  plan.place_segments();
  plan.rope_divisors_ = std::move(spec.rope_divisors);
  plan.importance_ = std::move(spec.importance);
  QSF_TRY(plan.tables(plan.segments_, plan.size_));
  return plan;
}

Result<FilePlan> FilePlan::restore(FileSpec spec, std::span<const std::byte> front, std::uint64_t size) {
  FilePlan plan;
  QSF_LET(header, read_header(front, size));
  plan.header_ = header;
  plan.front_size_ = front.size();
  plan.size_ = size;
  const auto part = [&](std::uint64_t at, std::uint64_t n) {
    return fits(at, n, front.size()) ? front.subspan(at, n) : std::span<const std::byte>();
  };
  plan.sections_.resize(header.n_sections);
  const auto directory = part(header.directory_offset, std::uint64_t{header.n_sections} * kSectionEntrySize);
  QSF_TRY(read_directory(header, directory, front.size(), plan.sections_));
  for (const SectionEntry& section : plan.sections_) {
    QSF_TRY(check_section(section, part(section.offset, section.size)));
  }
  const auto content = [&](std::uint32_t tag) { return plan.content_of(tag, front); };
  const auto index = part(header.layer_index_offset, std::uint64_t{header.n_layers} * kLayerEntrySize);
  std::vector<LayerEntry> layers(header.n_layers);
  QSF_TRY(read_layer_index(header, index, size, layers));
  for (const LayerEntry& layer : layers) plan.importance_.push_back(layer.importance);
  plan.tensors_.resize(content(kTagTensors).size() / kTensorEntrySize);
  QSF_TRY(read_tensors(header, content(kTagTensors), plan.tensors_));
  plan.segments_.resize(content(kTagSegments).size() / kSegmentEntrySize);
  QSF_TRY(read_segments(header, content(kTagSegments), size, plan.segments_));
  const auto copied = [](std::span<const std::byte> bytes) { return Bytes(bytes.begin(), bytes.end()); };
  plan.meta_ = copied(content(kTagMeta));
  plan.layer_table_ = copied(content(kTagLayers));
  const std::span<const std::byte> rope = content(kTagRope);
  plan.rope_divisors_.resize(rope.size() / sizeof(float));
  if (!rope.empty()) QSF_TRY(read_rope(header, rope, plan.rope_divisors_));
  const SectionEntry& segments = *find_section(plan.sections_, kTagSegments);
  plan.tables_size_ = segments.offset + segments.size;
  for (const SegmentEntry& segment : plan.segments_) plan.raw_size_ += segment.raw_size;
  plan.take_sources(spec);
  QSF_TRY(plan.match());
  // The tables are encoded anew, because a front of another writer may have another order.
  QSF_LET(tables, plan.tables(plan.segments_, size));
  if (!std::ranges::equal(tables, front.first(std::min<std::size_t>(front.size(), tables.size())))) {
    return make_error(ErrorCode::bad_input, "the front is not the one of a file plan");
  }
  return plan;
}

/// Checks that the sources are those of the front's tensors, and that no segment is compressed.
Status FilePlan::match() const {
  const auto same = [](const TensorSpec& a, const TensorEntry& b) {
    return a.stage == b.stage && a.role == b.role && a.format == b.format && a.layout == b.layout && a.rows == b.rows &&
           a.cols == b.cols;
  };
  const auto whole = [](const SegmentEntry& s) { return s.compression == Compression::none; };
  if (std::ranges::equal(sources_, tensors_, same) && std::ranges::all_of(segments_, whole)) return {};
  return make_error(ErrorCode::bad_input, "the tensors are not those of the front");
}

std::span<const std::byte> FilePlan::content_of(std::uint32_t tag, std::span<const std::byte> front) const {
  const SectionEntry* const section = find_section(sections_, tag);
  return section == nullptr ? std::span<const std::byte>() : front.subspan(section->offset, section->size);
}

void FilePlan::take_sources(FileSpec& spec) {
  sources_ = std::move(spec.tensors);
  heap_sort(sources_, [](const TensorSpec& a, const TensorSpec& b) {
    return a.stage != b.stage ? a.stage < b.stage : order(a) < order(b);
  });
}

Status FilePlan::plan_tensors() {
  CommonFormat formats;
  for (const TensorSpec& t : sources_) {
    if (role_index(t.role) == kNoRole || find_format(t.format) == nullptr) {
      return make_error(ErrorCode::unsupported, "tensor with role {} and type {} cannot be written", t.role, t.format);
    }
    TensorEntry entry;
    entry.stage = t.stage;
    entry.role = t.role;
    entry.format = t.format;
    entry.layout = t.layout;
    entry.rows = t.rows;
    entry.cols = t.cols;
    tensors_.push_back(entry);
    if (rule_of(t.role).matrix) formats.add(t.format);
    raw_size_ += tensor_bytes(*find_format(t.format), t.layout, t.rows, t.cols);
  }
  header_.quant = static_cast<std::uint8_t>(formats.get());
  return {};
}

/// Cuts a matrix into segments of at most `target` bytes, but at least one strip. If expert_rows is not 0, no segment
/// has rows of two experts.
void FilePlan::add_matrix(TensorEntry& tensor, std::uint64_t& raw, std::uint64_t target, std::uint64_t expert_rows) {
  const Format& format = *find_format(tensor.format);
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
    segment.stage = tensor.stage;
    segment.raw_begin = static_cast<std::uint32_t>(raw);
    segment.raw_size = static_cast<std::uint32_t>(share * strip + (i == 0 ? kTensorHeaderSize : 0));
    raw += segment.raw_size;
    segments_.push_back(segment);
  }
}

/// Returns the rows of one expert in a matrix of all experts of a layer; 0 for any other matrix.
std::uint32_t FilePlan::expert_rows_of(const LayerTable& table, const TensorEntry& tensor) const {
  const bool known = table.of_layer.size() == header_.n_layers && scope_of(header_, tensor.stage) == RoleScope::layer;
  return known ? expert_share(header_, kind_of_stage(header_, table, tensor.stage), rule_of(tensor.role)) : 0;
}

Status FilePlan::plan_segments(const FileSpec& spec) {
  const std::uint64_t target = spec.segment_bytes != 0
                                   ? spec.segment_bytes
                                   : std::clamp(raw_size_ / kSegmentsAimedAt, kLeastSegment, kMostSegment);
  if (target >= kLeastAligned) header_.flags |= kFlagAligned;
  for (std::size_t i = 0; i < tensors_.size();) {
    const std::uint32_t stage = tensors_[i].stage;
    const std::size_t first_segment = segments_.size();
    std::uint64_t raw = 0;
    for (; i < tensors_.size() && tensors_[i].stage == stage; ++i) {
      TensorEntry& t = tensors_[i];
      const std::uint64_t size = tensor_bytes(*find_format(t.format), t.layout, t.rows, t.cols) + trailer_bytes(t.role);
      if (size > UINT32_MAX - header_bytes(t.role) || raw > UINT32_MAX - header_bytes(t.role) - size) {
        return make_error(ErrorCode::unsupported, "stage {} would have more than 2^32 - 1 raw bytes", stage);
      }
      if (rule_of(t.role).matrix) {
        add_matrix(t, raw, target, expert_rows_of(spec.layers.view(), t));
        continue;
      }
      if (segments_.size() == first_segment) segments_.push_back({.stage = stage, .flags = kSegmentVectors});
      t.first_segment = static_cast<std::uint32_t>(first_segment);
      t.n_segments = 1;
      t.raw_offset = raw + header_bytes(t.role);
      raw = t.raw_offset + size;
      segments_.back().raw_size = static_cast<std::uint32_t>(raw);
    }
  }
  raw_size_ = 0;
  std::uint32_t next_stage = 0;
  for (const SegmentEntry& s : segments_) {
    raw_size_ += s.raw_size;
    if (s.stage == next_stage) ++next_stage;
  }
  const bool may_end = spec.layers.model.headless != 0 && next_stage + 1 == n_weight_stages(header_);
  if (next_stage < n_weight_stages(header_) && !may_end) {
    return make_error(ErrorCode::bad_tensor, "stage {} has no tensors", next_stage);
  }
  return {};
}

std::uint64_t FilePlan::begin_of(std::uint32_t segment, std::uint64_t at) const {
  const SegmentEntry& s = segments_[segment];
  if ((header_.flags & kFlagAligned) == 0) {
    return segment > 0 && segments_[segment - 1].stage != s.stage ? align_up(at) : at;
  }
  const std::uint64_t header = rows_of(segment).value_or(Rows{}).at;
  return align_up(at + header) - header;
}

/// Sets the offsets that the segments have if nothing is compressed.
void FilePlan::place_segments() {
  size_ = front_size_;
  for (std::uint32_t i = 0; i < segments_.size(); ++i) {
    SegmentEntry& s = segments_[i];
    s.offset = begin_of(i, size_);
    s.stored_size = s.raw_size;
    size_ = s.offset + s.raw_size;
  }
}

/// Places the directory, the layer index and the sections after the header. The index and the sections are 8-byte
/// aligned.
Status FilePlan::plan_sections(FileSpec& spec) {
  QSF_LET(meta, encode_meta(spec.meta));
  meta_ = std::move(meta);
  QSF_LET(usual, default_kind(header_, meta_));
  layer_table_ = encode_layer_table(spec.layers.view(), usual);
  Bytes rope;
  for (const float divisor : spec.rope_divisors) append(rope, divisor);
  const struct {
    std::uint32_t tag;
    bool needed, table;
    const Bytes& bytes;
    std::uint64_t size;
  } wanted[] = {{kTagTensors, true, true, {}, tensors_.size() * kTensorEntrySize},
                {kTagSegments, true, true, {}, segments_.size() * kSegmentEntrySize},
                {kTagMeta, true, false, meta_, meta_.size()},
                {kTagRope, true, false, rope, rope.size()},
                {kTagLayers, true, false, layer_table_, layer_table_.size()},
                {kTagTokenizer, false, false, spec.tokenizer, spec.tokenizer.size()}};
  header_.directory_offset = kHeaderSize;
  header_.n_sections = static_cast<std::uint32_t>(std::ranges::count_if(wanted, [](auto& w) { return w.size != 0; }));
  header_.layer_index_offset = align_up(kHeaderSize + std::uint64_t{header_.n_sections} * kSectionEntrySize, 8);
  std::uint64_t at = header_.layer_index_offset + std::uint64_t{header_.n_layers} * kLayerEntrySize;
  for (const auto& w : wanted) {
    if (w.size == 0) continue;
    if (w.size > UINT32_MAX) {
      return make_error(ErrorCode::unsupported, "stage {} would have {} bytes, 2^32 - 1 is the most",
                        TagName(w.tag).text, w.size);
    }
    SectionEntry entry;
    entry.tag = w.tag;
    entry.flags = w.needed ? kSectionNeeded : 0;
    entry.offset = align_up(at, 8);
    entry.size = static_cast<std::uint32_t>(w.size);
    at = entry.offset + entry.size;
    sections_.push_back(entry);
    if (w.table) tables_size_ = at;
  }
  front_size_ = align_up(at);
  rest_.resize(front_size_ - tables_size_);
  for (SectionEntry& section : sections_) {
    const auto& w = *std::ranges::find(wanted, section.tag, [](const auto& each) { return each.tag; });
    if (w.table) continue;
    section.crc = crc32(w.bytes);
    copy_to(rest_, section.offset - tables_size_, w.bytes);
  }
  return {};
}

/// Returns the layer index. Fills in the header's offsets of stages.
std::vector<LayerEntry> FilePlan::layers_of(std::span<const SegmentEntry> segments, Header& header) const {
  std::vector<LayerEntry> layers(header.n_layers);
  std::vector<CommonFormat> formats(header.n_layers);
  for (const TensorEntry& t : tensors_) {
    if (t.stage == 0 || t.stage > header.n_layers) continue;
    ++layers[t.stage - 1].n_tensors;
    if (rule_of(t.role).matrix) formats[t.stage - 1].add(t.format);
  }
  std::uint32_t stage = UINT32_MAX;
  for (const SegmentEntry& s : segments) {
    const bool first = s.stage != stage;
    stage = s.stage;
    if (stage == 0 || stage > header.n_layers) {
      if (first) (stage == 0 ? header.embedding_offset : header.final_offset) = s.offset;
      continue;
    }
    LayerEntry& layer = layers[stage - 1];
    if (first) layer.offset = s.offset;
    layer.stored_size += s.stored_size;
    layer.raw_size += s.raw_size;
    layer.crc = crc32_combine(layer.crc, s.crc, s.stored_size);
    if (s.compression != Compression::none) layer.compression = s.compression;
  }
  // A model without a head may have an empty final stage.
  if (stage == header.n_layers && stage != 0) header.final_offset = layers.back().offset;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].quant = static_cast<std::uint8_t>(formats[i].get());
    if (i < importance_.size()) layers[i].importance = importance_[i];
  }
  return layers;
}

Result<Bytes> FilePlan::tables(std::span<const SegmentEntry> segments, std::uint64_t size) const {
  Header header = header_;
  const std::vector<LayerEntry> layers = layers_of(segments, header);
  header.file_size_low = static_cast<std::uint32_t>(size);
  Bytes out(tables_size_);
  std::vector<SectionEntry> sections = sections_;
  const auto put_section = [&](std::uint32_t tag, const Bytes& bytes) {
    SectionEntry& section = *std::ranges::find(sections, tag, &SectionEntry::tag);
    section.crc = crc32(bytes);
    copy_to(out, section.offset, bytes);
  };
  put_section(kTagTensors, encode_all<TensorEntry>(tensors_, kTensorEntrySize));
  put_section(kTagSegments, encode_all<SegmentEntry>(segments, kSegmentEntrySize));
  const Bytes directory = encode_all<SectionEntry>(sections, kSectionEntrySize);
  const Bytes index = encode_all<LayerEntry>(layers, kLayerEntrySize);
  header.directory_crc = crc32(directory);
  header.layer_index_crc = crc32(index);
  copy_to(out, header.directory_offset, directory);
  copy_to(out, header.layer_index_offset, index);
  copy_to(out, 0, encode_header(header));
  QSF_TRY(check(header, size, layers, segments));
  return out;
}

Status FilePlan::check(const Header& planned, std::uint64_t size, std::span<const LayerEntry> layers,
                       std::span<const SegmentEntry> written) const {
  QSF_LET(header, read_header(encode_header(planned), size));
  std::vector<TensorEntry> tensors(tensors_.size());
  QSF_TRY(read_tensors(header, encode_all<TensorEntry>(tensors_, kTensorEntrySize), tensors));
  std::vector<SegmentEntry> segments(written.size());
  QSF_TRY(read_segments(header, encode_all<SegmentEntry>(written, kSegmentEntrySize), size, segments));
  if (!rope_divisors_.empty()) {
    std::vector<float> divisors(rope_divisors_.size());
    QSF_TRY(read_rope(header, std::as_bytes(std::span(rope_divisors_)), divisors));
  }
  QSF_LET(table, load_layer_table(header, meta_, layer_table_));
  QSF_TRY(check_rope_divisors(table.view(), rope_divisors_.size()));
  return check_tables(header, table.view(), layers, tensors, segments);
}

}  // namespace qsf
