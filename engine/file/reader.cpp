#include "qsf/file/reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <tuple>

#include "file/fields.h"
#include "qsf/base/checksum.h"
#include "qsf/base/try.h"

namespace qsf {
namespace {

struct Bounded {
  const char* name;
  std::uint32_t value;
  std::uint32_t least;
  std::uint32_t most;
};

Status check_bounded(std::span<const Bounded> fields) {
  for (const Bounded& f : fields) {
    if (f.value < f.least || f.value > f.most) {
      return make_error(ErrorCode::bad_header, "header: {} is {}, it must be {} to {}", f.name, f.value, f.least,
                        f.most);
    }
  }
  return {};
}

Status check_model(Header& h) {
  if (h.n_kv_heads == 0) h.n_kv_heads = h.n_heads;
  const Bounded fields[] = {
      {"architecture", static_cast<std::uint32_t>(h.arch), 0, static_cast<std::uint32_t>(Arch::custom)},
      {"activation", static_cast<std::uint32_t>(h.activation), 0, static_cast<std::uint32_t>(Activation::xielu)},
      {"norm", static_cast<std::uint32_t>(h.norm), 0, static_cast<std::uint32_t>(Norm::rms_norm)},
      {"position", static_cast<std::uint32_t>(h.position), 0, static_cast<std::uint32_t>(Position::alibi)},
  };
  QSF_TRY(check_bounded(fields));
  QSF_TRY(check_sizes(h, ErrorCode::bad_header));
  if (h.quant != static_cast<std::uint8_t>(FormatId::mixed) && format_index(static_cast<FormatId>(h.quant)) < 0) {
    return make_error(ErrorCode::unsupported, "header: quantization type {} is not known", h.quant);
  }
  if (h.position == Position::rope) {
    if (!std::isfinite(h.rope_theta) || h.rope_theta <= 0) {
      return make_error(ErrorCode::bad_header, "header: rope_theta is {}, it must be positive", h.rope_theta);
    }
    if (h.head_dim % 2 != 0) {
      return make_error(ErrorCode::bad_header, "header: head_dim {} is odd, RoPE rotates pairs", h.head_dim);
    }
  }
  const Bounded tokens[] = {
      {"bos", h.bos, 0, h.vocab_size - 1}, {"eos", h.eos, 0, h.vocab_size - 1}, {"pad", h.pad, 0, h.vocab_size - 1}};
  for (const Bounded& t : tokens) {
    if (t.value == kNoToken) continue;
    QSF_TRY(check_bounded({&t, 1}));
  }
  if ((h.flags & ~kKnownFlags) != 0) {
    return make_error(ErrorCode::unsupported, "header: flags are 0x{:x}, bits beyond 0x{:x} are not known", h.flags,
                      kKnownFlags);
  }
  return {};
}

Status check_place(const char* name, std::uint64_t offset, std::uint64_t size, std::uint64_t file_size) {
  if (offset >= kHeaderSize && fits(offset, size, file_size)) return {};
  return make_error(ErrorCode::bad_header, "header: {} at {}, {} bytes long, is not within bytes {} to {}", name,
                    offset, size, kHeaderSize, file_size);
}

Status check_crc(const char* what, std::span<const std::byte> bytes, std::uint32_t stated) {
  const std::uint32_t is = crc32(bytes);
  if (is == stated) return {};
  return make_error(ErrorCode::bad_checksum, "{}: checksum is {:08x}, the file states {:08x}", what, is, stated);
}

Status check_size(const char* what, std::size_t have, std::uint64_t want) {
  if (have == want) return {};
  return make_error(ErrorCode::truncated, "{}: {} bytes given, it has {}", what, have, want);
}

/// A kind of file that is often mistaken for QSF, recognized by its bytes at one offset.
struct Lookalike {
  std::size_t at;
  std::string_view bytes, what;
};
constexpr std::array kLookalikes{
    Lookalike{0, "GGUF", "; it is a GGUF file, of which qsf-convert makes one"},
    Lookalike{8, "{\"", "; it looks like safetensors: the model is the folder that they are in"},
    Lookalike{0, "PK\x03\x04", "; it is a zip archive, as PyTorch writes: the model is the folder that it is in"},
    Lookalike{0, "{", "; it is JSON: the model is the folder that it is in"},
    Lookalike{0, "version https://git-lfs", "; it is a pointer of Git LFS: the file itself was not fetched"},
    Lookalike{0, "<!", "; it is a web page: is the address the file's own?"},
    Lookalike{0, "<htm", "; it is a web page: is the address the file's own?"},
};

std::string_view what_instead(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Lookalike& other : kLookalikes) {
    if (text.size() > other.at && text.substr(other.at).starts_with(other.bytes)) return other.what;
  }
  return {};
}

}  // namespace

Result<Header> read_header(std::span<const std::byte> bytes, std::uint64_t file_size) {
  if (bytes.size() < 4 || load_le<std::uint32_t>(bytes.data()) != kMagic) {
    return make_error(ErrorCode::bad_magic, "not a QSF file: it does not begin with the bytes \"QSF1\"{}",
                      what_instead(bytes));
  }
  if (bytes.size() < kHeaderSize || file_size < kHeaderSize) {
    return make_error(ErrorCode::truncated, "the file has {} bytes, a header alone has {}",
                      std::min<std::uint64_t>(bytes.size(), file_size), kHeaderSize);
  }
  bytes = bytes.first(kHeaderSize);
  const auto version = load_le<std::uint32_t>(bytes.data() + 4);
  if (version != kVersion) {
    return make_error(ErrorCode::bad_version, "format version is {}, this build reads version {}", version, kVersion);
  }
  const auto header_size = load_le<std::uint32_t>(bytes.data() + 8);
  if (header_size != kHeaderSize) {
    return make_error(ErrorCode::bad_header, "header: its size is {}, version 1 has {}", header_size, kHeaderSize);
  }
  QSF_TRY(check_crc("header", bytes.first(kHeaderCrcAt), load_le<std::uint32_t>(bytes.data() + kHeaderCrcAt)));
  const std::span<const std::byte> extension = bytes.subspan(kExtensionAt);
  if (std::ranges::all_of(extension, [](std::byte b) { return b == std::byte{0}; })) {
    return make_error(ErrorCode::unsupported, "header: bytes 100-127 are zero, so the file has no section directory");
  }
  QSF_TRY(check_crc("header extension", bytes.subspan(kExtensionAt, kExtensionCrcAt - kExtensionAt),
                    load_le<std::uint32_t>(bytes.data() + kExtensionCrcAt)));

  Header h = decode<Header>(bytes.data());
  if (h.file_size_low != static_cast<std::uint32_t>(file_size)) {
    return make_error(ErrorCode::truncated, "the file has {} bytes, its header says {} (lower 32 bits): it was cut",
                      file_size, h.file_size_low);
  }
  QSF_TRY(check_model(h));
  if (h.n_sections < 1 || h.n_sections > kMaxSections) {
    return make_error(ErrorCode::bad_header, "header: n_sections is {}, it must be 1 to {}", h.n_sections,
                      kMaxSections);
  }
  for (const auto& [name, offset, size] : {
           std::tuple{"section directory", h.directory_offset, std::uint64_t{h.n_sections} * kSectionEntrySize},
           std::tuple{"layer index", h.layer_index_offset, std::uint64_t{h.n_layers} * kLayerEntrySize},
           std::tuple{"embedding", h.embedding_offset, std::uint64_t{kTensorHeaderSize}},
           std::tuple{"final stage", h.final_offset, std::uint64_t{1}},
       }) {
    QSF_TRY(check_place(name, offset, size, file_size));
  }
  return h;
}

Status read_directory(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                      std::span<SectionEntry> out) {
  QSF_TRY(check_size("section directory", bytes.size(), std::uint64_t{header.n_sections} * kSectionEntrySize));
  if (out.size() != header.n_sections) {
    return make_error(ErrorCode::bad_argument, "section directory: room for {} entries, it has {}", out.size(),
                      header.n_sections);
  }
  QSF_TRY(check_crc("section directory", bytes, header.directory_crc));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const SectionEntry section = decode<SectionEntry>(bytes.data() + i * kSectionEntrySize);
    const TagName name(section.tag);
    if (section.offset < kHeaderSize || !fits(section.offset, section.size, file_size)) {
      return make_error(ErrorCode::bad_section, "section {} at {}, {} bytes long, is not within bytes {} to {}",
                        name.text, section.offset, section.size, kHeaderSize, file_size);
    }
    for (const SectionEntry& before : out.first(i)) {
      if (before.tag == section.tag) {
        return make_error(ErrorCode::bad_section, "section {} is in the directory twice", name.text);
      }
      if (section.offset < before.offset + before.size && before.offset < section.offset + section.size) {
        return make_error(ErrorCode::bad_section, "section {} at {} overlaps section {}", name.text, section.offset,
                          TagName(before.tag).text);
      }
    }
    const bool known = std::ranges::find(kKnownTags, section.tag) != kKnownTags.end();
    if ((section.flags & ~kSectionNeeded) != 0 || ((section.flags & kSectionNeeded) != 0 && !known)) {
      return make_error(ErrorCode::unsupported, "section {} has flags 0x{:x}, this build does not know {}", name.text,
                        section.flags, known ? "them" : "a section it cannot do without");
    }
    out[i] = section;
  }
  for (const std::uint32_t needed : {kTagTensors, kTagSegments, kTagMeta}) {
    if (find_section(out, needed) == nullptr) {
      return make_error(ErrorCode::bad_section, "section {} is missing from the directory", TagName(needed).text);
    }
  }
  return {};
}

const SectionEntry* find_section(std::span<const SectionEntry> sections, std::uint32_t tag) {
  const auto found = std::ranges::find(sections, tag, &SectionEntry::tag);
  return found == sections.end() ? nullptr : &*found;
}

Status check_section(const SectionEntry& section, std::span<const std::byte> bytes) {
  const TagName name(section.tag);
  QSF_TRY(check_size(name.text, bytes.size(), section.size));
  return check_crc(name.text, bytes, section.crc);
}

Status read_layer_index(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                        std::span<LayerEntry> out) {
  QSF_TRY(check_size("layer index", bytes.size(), std::uint64_t{header.n_layers} * kLayerEntrySize));
  if (out.size() != header.n_layers) {
    return make_error(ErrorCode::bad_argument, "layer index: room for {} entries, it has {}", out.size(),
                      header.n_layers);
  }
  QSF_TRY(check_crc("layer index", bytes, header.layer_index_crc));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * kLayerEntrySize;
    const LayerEntry layer = decode<LayerEntry>(at);
    if (layer.offset < kHeaderSize || !fits(layer.offset, layer.stored_size, file_size)) {
      return make_error(ErrorCode::bad_index, "layer {} at {}, {} bytes long, is not within bytes {} to {}", i,
                        layer.offset, layer.stored_size, kHeaderSize, file_size);
    }
    if (layer.quant != static_cast<std::uint8_t>(FormatId::mixed) &&
        format_index(static_cast<FormatId>(layer.quant)) < 0) {
      return make_error(ErrorCode::unsupported, "layer {}: quantization type {} is not known", i, layer.quant);
    }
    if (layer.compression > Compression::zstd) {
      return make_error(ErrorCode::unsupported, "layer {}: compression type {} is not known", i, layer.compression);
    }
    if (!std::isfinite(layer.importance)) {
      return make_error(ErrorCode::bad_index, "layer {}: importance is not a finite number", i);
    }
    if (const auto reserved = load_le<std::uint32_t>(at + 28); reserved != 0) {
      return make_error(ErrorCode::unsupported, "layer {}: reserved bytes 28-31 hold 0x{:x}, not 0", i, reserved);
    }
    out[i] = layer;
  }
  return {};
}

Status read_rope(const Header& header, std::span<const std::byte> bytes, std::span<float> out) {
  if (bytes.size() != out.size() * sizeof(float) || out.size() > header.head_dim) {
    return make_error(ErrorCode::bad_section, "section ROPE has {} bytes, head_dim {} makes it {} at most",
                      bytes.size(), header.head_dim, std::uint64_t{header.head_dim} * sizeof(float));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto divisor = load_le<float>(bytes.data() + i * sizeof(float));
    if (!(divisor > 0.0f && divisor < 1e9f) && divisor != kNotTurned) {
      return make_error(ErrorCode::bad_section,
                        "section ROPE: divisor {} is {}, it must be above 0 and below 1e9, or 1e30", i, divisor);
    }
    out[i] = divisor;
  }
  return {};
}

}  // namespace qsf
