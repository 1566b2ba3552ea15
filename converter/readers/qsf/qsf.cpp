#include "converter/readers/qsf/qsf.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/readers/qsf/tables.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"
#include "qsf/formats/format.h"

namespace qsf::convert {
namespace {

using Segment = std::shared_ptr<const std::vector<std::byte>>;

/// The segments of a file, of which the last one is kept, because rows are read in their order. Any thread.
class Segments {
 public:
  Segments(Input file, Tables tables) : file_(std::move(file)), tables_(std::move(tables)) {}

  const Tables& tables() const { return tables_; }
  std::uint32_t input() const { return file_.number; }

  Result<Segment> read(std::uint32_t i) {
    {
      const std::lock_guard lock(mutex_);
      if (last_ && i == kept_) return last_;
    }
    QSF_LET(bytes, read_segment(file_, tables_, i));
    Segment segment = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    const std::lock_guard lock(mutex_);
    kept_ = i;
    last_ = segment;
    return segment;
  }

 private:
  Input file_;
  Tables tables_;
  std::mutex mutex_;
  std::uint32_t kept_ = 0;
  Segment last_;
};

/// Rows of a tensor in a segment: the first is in the strip at byte `at`.
struct Piece {
  std::uint32_t segment = 0, first = 0, n = 0;
  std::uint64_t at = 0;
};

/// Returns the pieces of rows [begin, begin + n), which are strips of the tensor's segments.
std::vector<Piece> pieces_of(const Tables& t, const TensorEntry& tensor, std::uint32_t begin, std::uint32_t n) {
  const std::uint32_t strip = strip_rows(tensor.layout);
  const std::uint64_t strip_bytes = strip * row_bytes(*find_format(tensor.format), tensor.cols);
  std::vector<Piece> out;
  std::uint64_t row = 0;  // the first of the segment
  for (std::uint32_t i = tensor.first_segment; i < tensor.first_segment + tensor.n_segments; ++i) {
    const SegmentEntry& s = t.segments[i];
    const std::uint64_t from = std::max<std::uint64_t>(s.raw_begin, tensor.raw_offset);
    const std::uint64_t left = (tensor.rows - row + strip - 1) / strip;
    const std::uint64_t strips = std::min(left, (s.raw_begin + std::uint64_t{s.raw_size} - from) / strip_bytes);
    const std::uint64_t end = row + strips * strip, first = std::max<std::uint64_t>(row, begin);
    if (const std::uint64_t last = std::min<std::uint64_t>(end, std::uint64_t{begin} + n); first < last) {
      out.push_back({i, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first),
                     from - s.raw_begin + (first - row) / strip * strip_bytes});
    }
    row = end;
  }
  return out;
}

/// Returns the rows of tensor i, which are read from whole segments.
RowsOf rows_from(const std::shared_ptr<Segments>& segments, std::size_t i) {
  const auto read = [segments, i](std::uint32_t begin, std::uint32_t n, std::span<std::byte> out) -> Status {
    const TensorEntry& tensor = segments->tables().tensors[i];
    const Format& format = *find_format(tensor.format);
    const std::uint64_t size = row_bytes(format, tensor.cols);
    if (out.size() != n * size || begin > tensor.rows || n > tensor.rows - begin) {
      return wrong_size(role_name(tensor.role), n, out.size());
    }
    for (const Piece& piece : pieces_of(segments->tables(), tensor, begin, n)) {
      QSF_LET(segment, segments->read(piece.segment));
      for (std::uint32_t r = piece.first; r < piece.first + piece.n; ++r) {
        const std::span<std::byte> to = out.subspan((r - begin) * size, size);
        const std::uint32_t strip = strip_rows(tensor.layout), first = piece.first / strip * strip;
        const std::uint64_t at = piece.at + (r - first) / strip * strip * size;
        const std::span<const std::byte> from = std::span(*segment).subspan(at, strip * size);
        tensor.layout == Layout::tiles ? untile_row(format, from, r % strip, to)
                                       : (void)std::ranges::copy(from, to.begin());
      }
    }
    return {};
  };
  const auto runs = [segments, i](std::uint32_t begin, std::uint32_t n, std::vector<InputRun>& out) {
    const Tables& t = segments->tables();
    for (const Piece& piece : pieces_of(t, t.tensors[i], begin, n)) {
      const SegmentEntry& s = t.segments[piece.segment];
      out.push_back({segments->input(), s.offset, s.stored_size});
    }
    return RowsFrom::runs;
  };
  return {read, runs};
}

Status read_meta(std::span<const std::byte> bytes, std::vector<MetaEntry>& out) {
  QSF_LET(reader, MetaReader::open(bytes));
  for (MetaValue value;;) {
    QSF_LET(more, reader.next(value));
    if (!more) return {};
    out.push_back({std::string(value.key), value.type, value.u32, value.f32, std::string(value.text)});
  }
}

/// Reads numbers such as "2, 107".
std::vector<std::uint32_t> numbers_in(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    std::uint32_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error == std::errc()) out.push_back(number);
    at = error == std::errc() ? after : at + 1;
  }
  return out;
}

/// Fills in what other kinds of output need of a model.
void read_config(const FileContents& file, LoadedModel& out) {
  const Header& h = file.header;
  ModelConfig& c = out.config;
  visit_sizes(h, [&](const LayerKey& key, std::uint32_t value) {
    if (key.name == "n_layers") c.n_layers = value;
    if (key.name == "dim") c.dim = value;
    if (key.name == "n_heads") c.n_heads = value;
    if (key.name == "n_kv_heads") c.n_kv_heads = value;
    if (key.name == "head_dim") c.head_dim = value;
    if (key.name == "ffn_dim") c.ffn_dim = value;
    if (key.name == "vocab_size") c.vocab_size = value;
    if (key.name == "max_seq_len") c.max_seq_len = value;
  });
  c.guess_layer = file.layers.model.guess_layer != 0;
  c.n_layers -= file.layers.model.guess_layer;
  c.rope_theta = h.rope_theta;
  c.bos = h.bos;
  c.eos = h.eos;
  c.pad = h.pad;
  c.tied = (h.flags & kFlagTied) != 0;
  const auto rotated =
      std::ranges::find_if(file.layers.kinds, [](const LayerKind& kind) { return kind.rope_dims != 0; });
  if (rotated != file.layers.kinds.end()) c.rope_dims = rotated->rope_dims;
  std::string architecture = "?";
  for (const MetaEntry& entry : file.meta) {
    if (entry.key == kMetaName) c.name = entry.text;
    if (entry.key == kMetaArchitecture) architecture = entry.text;
    if (entry.key == kMetaEndTokens) c.all_eos = numbers_in(entry.text);
    if (entry.key.starts_with(kMetaChatTokens)) out.chat.emplace_back(entry.key, entry.text);
  }
  if (c.all_eos.empty() && c.eos != kNoToken) c.all_eos.push_back(c.eos);
  if (out.recipe) return;
  const Recipe* const known = find_recipe(architecture);
  out.recipe = std::make_shared<const Recipe>(known != nullptr ? *known : Recipe{.name = architecture});
}

}  // namespace

bool is_qsf(const ModelLocation& place) {
  constexpr std::string_view kMagic = "QSF1";
  return place.file && place.head.size() >= kMagic.size() &&
         std::memcmp(place.head.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<LoadedModel> open_qsf(const ModelLocation& place, bool with_tokenizer) {
  LoadedModel out;
  out.kind = "QSF";
  out.carry_formats = true;
  out.recipe = place.recipe;
  auto file = std::make_shared<FileContents>();
  QSF_LET(tables, read_tables(*place.file));
  file->header = tables.header;
  file->layers = tables.table;
  const auto bytes_of = [&](std::uint32_t tag) -> Result<std::vector<std::byte>> {
    const SectionEntry* const section = find_section(tables.sections, tag);
    if (section == nullptr) return std::vector<std::byte>{};
    return section_bytes(*place.file, *section);
  };
  QSF_LET(meta, bytes_of(kTagMeta));
  QSF_TRY(read_meta(meta, file->meta));
  QSF_LET(rope, bytes_of(kTagRope));
  out.config.rope_divisors.resize(rope.size() / sizeof(float));
  QSF_TRY(read_rope(tables.header, rope, out.config.rope_divisors));
  for (const LayerEntry& layer : tables.layers) file->importance.push_back(layer.importance);
  if (std::ranges::count(file->importance, 0.0f) == std::ssize(file->importance)) file->importance.clear();
  if (with_tokenizer) {
    QSF_LET(section, bytes_of(kTagTokenizer));
    if (!section.empty()) {
      QSF_LET(source, tokenizer_source(section, tables.header.vocab_size));
      if (source.kind == TokenizerKind::wordpiece) source.bos = tables.header.bos, source.eos = tables.header.eos;
      out.tokenizer = std::move(source);
    }
    file->tokenizer = std::move(section);
  }
  read_config(*file, out);
  const auto segments = std::make_shared<Segments>(*place.file, std::move(tables));
  const std::vector<TensorEntry>& tensors = segments->tables().tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorEntry& t = tensors[i];
    LoadedTensor tensor;
    tensor.name = stage_name(file->header, t.stage) + " " + std::string(role_name(t.role));
    tensor.format = t.format;
    tensor.type = find_format(t.format)->name;
    tensor.shape = {t.rows, t.cols};
    tensor.rows_of = rows_from(segments, i);
    out.tensors.push_back(std::move(tensor));
    file->places.emplace_back(t.stage, t.role);
  }
  out.file = std::move(file);
  return out;
}

}  // namespace qsf::convert
