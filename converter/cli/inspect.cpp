#include "converter/cli/inspect.h"

#include <algorithm>
#include <array>

#include "converter/cli/table.h"
#include "converter/readers/qsf/tables.h"
#include "qsf/base/try.h"
#include "qsf/file/reader.h"
#include "qsf/file/roles.h"
#include "qsf/text/tokenizer.h"

namespace qsf::convert {
namespace {

std::string hex(std::uint32_t n) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", n);
  return text;
}
std::string number(std::uint64_t n) { return std::to_string(n); }
std::string real(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", x);
  return text;
}
std::string format_name(std::uint8_t id) {
  const auto format_id = static_cast<FormatId>(id);
  if (format_id == FormatId::mixed) return "mixed";
  const Format* format = find_format(format_id);
  return format ? std::string(format->name) : "type " + std::to_string(id);
}
std::string format_name(FormatId id) { return format_name(static_cast<std::uint8_t>(id)); }
template <std::size_t N>
std::string name_in(const std::array<const char*, N>& names, std::uint32_t value) {
  return value < N ? names[value] : std::to_string(value);
}
constexpr std::array kArchNames{"gpt2", "llama", "mistral", "phi", "custom"};
constexpr std::array kActivationNames{"gelu", "silu", "relu", "gelu_erf", "relu2", "xielu"};
constexpr std::array kNormNames{"layer norm", "rms norm"};
constexpr std::array kPositionNames{"learned", "rope", "alibi"};
constexpr std::array kCompressionNames{"none", "lz4", "lz4hc", "zstd"};
constexpr std::array kLayoutNames{"rows", "tiles"};

std::string token_text(std::uint32_t id) { return id == kNoToken ? "none" : number(id); }

void print_header(const Header& h, std::uint64_t file_size, std::FILE* out) {
  std::fprintf(out, "header\n");
  Table table({"field", "value"});
  table.add({"file size", grouped(file_size)});
  table.add({"architecture", name_in(kArchNames, static_cast<std::uint32_t>(h.arch))});
  visit_sizes(h, [&](const LayerKey& key, std::uint32_t value) { table.add({std::string(key.name), number(value)}); });
  table.add({"weights", format_name(h.quant)});
  table.add({"activation", name_in(kActivationNames, static_cast<std::uint32_t>(h.activation))});
  table.add({"norm", name_in(kNormNames, static_cast<std::uint32_t>(h.norm))});
  table.add({"position", name_in(kPositionNames, static_cast<std::uint32_t>(h.position))});
  table.add({"rope theta", real(h.rope_theta)});
  table.add({"bos, eos, pad", token_text(h.bos) + ", " + token_text(h.eos) + ", " + token_text(h.pad)});
  table.add({"layer index at", number(h.layer_index_offset)});
  table.add({"embedding at", number(h.embedding_offset)});
  table.add({"final stage at", number(h.final_offset)});
  table.add({"directory at", number(h.directory_offset)});
  table.add({"segments", (h.flags & kFlagAligned) != 0 ? "aligned" : "without gaps"});
  table.print(out);
}

void print_sections(std::span<const SectionEntry> sections, std::FILE* out) {
  std::fprintf(out, "\nsections\n");
  Table table({"tag", "offset", "size", "crc32", "flags"});
  for (const SectionEntry& s : sections) {
    table.add({tag_text(s.tag), number(s.offset), number(s.size), hex(s.crc), hex(s.flags)});
  }
  table.print(out);
}

/// Returns the text, or its size if it is too long for a line.
std::string in_short(std::string_view text) {
  constexpr std::size_t kLine = 200;
  return text.size() <= kLine ? std::string(text) : grouped(text.size()) + " bytes";
}

Status print_meta(std::span<const std::byte> bytes, std::FILE* out) {
  QSF_LET(reader, MetaReader::open(bytes));
  Table table({"key", "type", "value"});
  for (;;) {
    MetaValue value;
    const Result<bool> more = reader.next(value);
    if (!more) return more.error();
    if (!*more) break;
    const std::string key(value.key);
    if (value.type == MetaType::u32) table.add({key, "u32", number(value.u32)});
    if (value.type == MetaType::f32) table.add({key, "f32", real(value.f32)});
    if (value.type == MetaType::text) table.add({key, "text", in_short(value.text)});
  }
  std::fprintf(out, "\nmetadata\n");
  table.print(out);
  return {};
}

template <class T>
std::string value_of_key(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return real(value);
  } else {
    return number(static_cast<std::uint32_t>(value));
  }
}

/// Prints a line for every key and a column for every kind.
void print_kinds(const Tables& t, std::FILE* out) {
  const LayerTableBuilder& layers = t.table;
  std::vector<std::string> titles{"kind of layer"};
  for (std::size_t i = 0; i < layers.kinds.size(); ++i) titles.push_back(number(i));
  Table table(titles);
  std::vector<std::vector<std::string>> rows(kLayerKeys.size() + 1);
  rows.back() = {"layers"};
  for (std::size_t kind = 0; kind < layers.kinds.size(); ++kind) {
    std::size_t i = 0;
    visit_layer_keys(layers.kinds[kind], [&](const LayerKey& key, const auto& value) {
      std::vector<std::string>& row = rows[i++];
      if (row.empty()) row.emplace_back(key.name);
      row.push_back(value_of_key(value));
    });
    rows.back().push_back(number(static_cast<std::size_t>(std::ranges::count(layers.of_layer, kind))));
  }
  std::fprintf(out, "\nlayers\n");
  for (const std::vector<std::string>& row : rows) table.add(row);
  table.print(out);
  Table model({"model", "value"});
  const bool tied = (t.header.flags & kFlagTied) != 0, headless = layers.model.headless != 0;
  model.add({"output head", tied ? "tied to the embedding" : headless ? "none" : "its own"});
  const auto final_norm = std::ranges::find(t.tensors, Role::final_norm, &TensorEntry::role);
  model.add({"final norm", final_norm == t.tensors.end() ? "none" : format_name(final_norm->format)});
  visit_model_keys(layers.model, [&](const LayerKey& key, const auto& value) {
    model.add({std::string(key.name), value_of_key(value)});
  });
  model.print(out);
}

void print_layers(std::span<const LayerEntry> layers, std::FILE* out) {
  std::fprintf(out, "\nlayer index\n");
  Table table({"layer", "offset", "stored", "raw", "weights", "compression", "tensors", "crc32", "importance"});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerEntry& l = layers[i];
    table.add({number(i), number(l.offset), number(l.stored_size), number(l.raw_size), format_name(l.quant),
               name_in(kCompressionNames, static_cast<std::uint32_t>(l.compression)), number(l.n_tensors), hex(l.crc),
               real(l.importance)});
  }
  table.print(out);
}

void print_tensors(const Tables& t, std::FILE* out) {
  std::fprintf(out, "\ntensors\n");
  Table table({"stage", "role", "format", "layout", "rows", "cols", "bytes", "raw offset", "segments"});
  for (const TensorEntry& e : t.tensors) {
    const std::uint32_t last = e.first_segment + e.n_segments - 1;
    table.add({stage_name(t.header, e.stage), std::string(role_name(e.role)), format_name(e.format),
               name_in(kLayoutNames, static_cast<std::uint32_t>(e.layout)), number(e.rows), number(e.cols),
               number(tensor_bytes(*find_format(e.format), e.layout, e.rows, e.cols)), number(e.raw_offset),
               e.n_segments > 1 ? number(e.first_segment) + "-" + number(last) : number(e.first_segment)});
  }
  table.print(out);
}

void print_segments(const Tables& t, std::FILE* out) {
  std::fprintf(out, "\nsegments\n");
  Table table({"segment", "stage", "offset", "stored", "raw", "raw begin", "compression", "holds", "crc32"});
  for (std::size_t i = 0; i < t.segments.size(); ++i) {
    const SegmentEntry& s = t.segments[i];
    table.add({number(i), stage_name(t.header, s.stage), number(s.offset), number(s.stored_size), number(s.raw_size),
               number(s.raw_begin), name_in(kCompressionNames, static_cast<std::uint32_t>(s.compression)),
               s.flags & kSegmentVectors ? "vectors" : "matrix", hex(s.crc)});
  }
  table.print(out);
}

Status check_tokenizer(const Input& file, const Tables& t, std::FILE* out) {
  const SectionEntry* section = find_section(t.sections, kTagTokenizer);
  if (!section) {
    std::fprintf(out, "\nno tokenizer: the file only takes token ids\n");
    return {};
  }
  QSF_LET(bytes, section_bytes(file, *section));
  QSF_LET(tokenizer, Tokenizer::open(bytes, t.header.vocab_size));
  std::fprintf(out, "\ntokenizer: %s bytes%s\n", grouped(section->size).c_str(),
               tokenizer.add_bos() ? ", prompts begin with the bos token" : "");
  return {};
}

Status check_layers(const Input& file, const Tables& t) {
  std::vector<std::uint32_t> crcs(n_weight_stages(t.header));
  for (const SegmentEntry& s : t.segments) {
    QSF_LET(crc, crc_of(file, s.offset, s.stored_size, crcs[s.stage]));
    crcs[s.stage] = crc;
  }
  for (std::size_t i = 0; i < t.layers.size(); ++i) {
    if (const std::uint32_t crc = crcs[i + 1]; crc != t.layers[i].crc) {
      return make_error(ErrorCode::bad_checksum, "layer {} has the checksum 0x{:08x}, but the index says 0x{:08x}", i,
                        crc, t.layers[i].crc);
    }
  }
  return {};
}

}  // namespace

Status inspect(const Input& file, std::FILE* out) {
  Tables t;
  QSF_TRY(read_front(file, t));
  print_header(t.header, file.size, out);
  print_sections(t.sections, out);
  QSF_TRY(check_sections(file, t));
  const SectionEntry* meta = find_section(t.sections, kTagMeta);
  QSF_TRY(need(meta, "META"));
  QSF_LET(meta_bytes, section_bytes(file, *meta));
  QSF_TRY(print_meta(meta_bytes, out));
  print_layers(t.layers, out);
  QSF_TRY(read_lists(file, t));
  print_kinds(t, out);
  print_tensors(t, out);
  print_segments(t, out);
  QSF_TRY(check_tokenizer(file, t, out));
  for (std::uint32_t i = 0; i < t.segments.size(); ++i) {
    QSF_TRY(read_segment(file, t, i));
  }
  QSF_TRY(check_layers(file, t));
  std::fprintf(out, "\nall checksums agree: header, directory, layer index, %zu sections, %zu layers, %zu segments\n",
               t.sections.size(), t.layers.size(), t.segments.size());
  return {};
}

}  // namespace qsf::convert
