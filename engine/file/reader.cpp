#include "file/reader.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/checksum.h"
#include "file/fields.h"

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
      return make_error(ErrorCode::bad_header, "header: %s is %u, it must be %u to %u", f.name, f.value, f.least,
                        f.most);
    }
  }
  return {};
}

Status check_model(Header& h) {
  if (h.n_kv_heads == 0) h.n_kv_heads = h.n_heads;
  const Bounded fields[] = {
      {"architecture", static_cast<std::uint32_t>(h.arch), 0, static_cast<std::uint32_t>(Arch::custom)},
      {"n_layers", h.n_layers, 1, kMaxLayers},
      {"dim", h.dim, 1, kMaxDim},
      {"n_heads", h.n_heads, 1, kMaxDim},
      {"n_kv_heads", h.n_kv_heads, 1, h.n_heads},
      {"vocab_size", h.vocab_size, 1, kMaxVocab},
      {"max_seq_len", h.max_seq_len, 1, kMaxSeqLen},
      {"ffn_dim", h.ffn_dim, 1, kMaxDim},
      {"head_dim", h.head_dim, 1, kMaxDim},
      {"activation", static_cast<std::uint32_t>(h.activation), 0, static_cast<std::uint32_t>(Activation::relu)},
      {"norm", static_cast<std::uint32_t>(h.norm), 0, static_cast<std::uint32_t>(Norm::rms_norm)},
      {"position", static_cast<std::uint32_t>(h.position), 0, static_cast<std::uint32_t>(Position::alibi)},
  };
  if (Status s = check_bounded(fields); !s) return s;
  if (h.n_heads % h.n_kv_heads != 0) {
    return make_error(ErrorCode::bad_header, "header: n_heads %u is not a multiple of n_kv_heads %u", h.n_heads,
                      h.n_kv_heads);
  }
  if (static_cast<std::uint64_t>(h.n_heads) * h.head_dim > kMaxDim) {
    return make_error(ErrorCode::bad_header, "header: n_heads %u times head_dim %u is more than %u", h.n_heads,
                      h.head_dim, kMaxDim);
  }
  if (h.quant != static_cast<std::uint8_t>(FormatId::mixed) && format_index(static_cast<FormatId>(h.quant)) < 0) {
    return make_error(ErrorCode::unsupported, "header: quantization type %u is not known", h.quant);
  }
  if (h.position == Position::rope) {
    if (!std::isfinite(h.rope_theta) || h.rope_theta <= 0) {
      return make_error(ErrorCode::bad_header, "header: rope_theta is %g, it must be positive",
                        static_cast<double>(h.rope_theta));
    }
    if (h.head_dim % 2 != 0) {
      return make_error(ErrorCode::bad_header, "header: head_dim %u is odd, RoPE rotates pairs", h.head_dim);
    }
  }
  const Bounded tokens[] = {
      {"bos", h.bos, 0, h.vocab_size - 1}, {"eos", h.eos, 0, h.vocab_size - 1}, {"pad", h.pad, 0, h.vocab_size - 1}};
  for (const Bounded& t : tokens) {
    if (t.value == kNoToken) continue;
    if (Status s = check_bounded({&t, 1}); !s) return s;
  }
  if ((h.flags & ~(kFlagTied | kFlagFinalNormF32)) != 0) {
    return make_error(ErrorCode::unsupported, "header: flags are 0x%x, bits beyond 0x%x are not known", h.flags,
                      kFlagTied | kFlagFinalNormF32);
  }
  return {};
}

Status check_place(const char* name, std::uint64_t offset, std::uint64_t size, std::uint64_t file_size) {
  if (offset >= kHeaderSize && fits(offset, size, file_size)) return {};
  return make_error(ErrorCode::bad_header, "header: %s at %llu, %llu bytes long, is not within bytes %u to %llu", name,
                    static_cast<unsigned long long>(offset), static_cast<unsigned long long>(size), kHeaderSize,
                    static_cast<unsigned long long>(file_size));
}

Status check_crc(const char* what, std::span<const std::byte> bytes, std::uint32_t stated) {
  const std::uint32_t is = crc32(bytes);
  if (is == stated) return {};
  return make_error(ErrorCode::bad_checksum, "%s: checksum is %08x, the file states %08x", what, is, stated);
}

Status check_size(const char* what, std::size_t have, std::uint64_t want) {
  if (have == want) return {};
  return make_error(ErrorCode::truncated, "%s: %llu bytes given, it has %llu", what,
                    static_cast<unsigned long long>(have), static_cast<unsigned long long>(want));
}

}  // namespace

Result<Header> read_header(std::span<const std::byte> bytes, std::uint64_t file_size) {
  if (bytes.size() < 4 || load_le<std::uint32_t>(bytes.data()) != kMagic) {
    return make_error(ErrorCode::bad_magic, "not a QSF file: it does not begin with the bytes \"QSF1\"");
  }
  if (bytes.size() < kHeaderSize || file_size < kHeaderSize) {
    return make_error(ErrorCode::truncated, "the file has %llu bytes, a header alone has %u",
                      static_cast<unsigned long long>(std::min<std::uint64_t>(bytes.size(), file_size)), kHeaderSize);
  }
  bytes = bytes.first(kHeaderSize);
  const auto version = load_le<std::uint32_t>(bytes.data() + 4);
  if (version != kVersion) {
    return make_error(ErrorCode::bad_version, "format version is %u, this build reads version %u", version, kVersion);
  }
  const auto header_size = load_le<std::uint32_t>(bytes.data() + 8);
  if (header_size != kHeaderSize) {
    return make_error(ErrorCode::bad_header, "header: its size is %u, version 1 has %u", header_size, kHeaderSize);
  }
  if (Status s = check_crc("header", bytes.first(kHeaderCrcAt), load_le<std::uint32_t>(bytes.data() + kHeaderCrcAt));
      !s) {
    return s.error();
  }
  const std::span<const std::byte> extension = bytes.subspan(kExtensionAt);
  if (std::ranges::all_of(extension, [](std::byte b) { return b == std::byte{0}; })) {
    return make_error(ErrorCode::unsupported, "header: bytes 100-127 are zero, so the file has no section directory");
  }
  if (Status s = check_crc("header extension", bytes.subspan(kExtensionAt, kExtensionCrcAt - kExtensionAt),
                           load_le<std::uint32_t>(bytes.data() + kExtensionCrcAt));
      !s) {
    return s.error();
  }

  Header h = decode<Header>(bytes.data());
  if (h.file_size_low != static_cast<std::uint32_t>(file_size)) {
    return make_error(ErrorCode::truncated, "the file has %llu bytes, its header says %u (lower 32 bits): it was cut",
                      static_cast<unsigned long long>(file_size), h.file_size_low);
  }
  if (Status s = check_model(h); !s) return s.error();
  if (h.n_sections < 1 || h.n_sections > kMaxSections) {
    return make_error(ErrorCode::bad_header, "header: n_sections is %u, it must be 1 to %u", h.n_sections,
                      kMaxSections);
  }
  for (const auto& [name, offset, size] : {
           std::tuple{"section directory", h.directory_offset, std::uint64_t{h.n_sections} * kSectionEntrySize},
           std::tuple{"layer index", h.layer_index_offset, std::uint64_t{h.n_layers} * kLayerEntrySize},
           std::tuple{"embedding", h.embedding_offset, std::uint64_t{kTensorHeaderSize}},
           std::tuple{"final section", h.final_offset, std::uint64_t{1}},
       }) {
    if (Status s = check_place(name, offset, size, file_size); !s) return s.error();
  }
  return h;
}

Status read_directory(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                      std::span<SectionEntry> out) {
  if (Status s = check_size("section directory", bytes.size(), std::uint64_t{header.n_sections} * kSectionEntrySize);
      !s) {
    return s;
  }
  if (out.size() != header.n_sections) {
    return make_error(ErrorCode::bad_argument, "section directory: room for %zu entries, it has %u", out.size(),
                      header.n_sections);
  }
  if (Status s = check_crc("section directory", bytes, header.directory_crc); !s) return s;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const SectionEntry section = decode<SectionEntry>(bytes.data() + i * kSectionEntrySize);
    const TagName name(section.tag);
    if (section.offset < kHeaderSize || !fits(section.offset, section.size, file_size)) {
      return make_error(ErrorCode::bad_section, "section %s at %llu, %u bytes long, is not within bytes %u to %llu",
                        name.text, static_cast<unsigned long long>(section.offset), section.size, kHeaderSize,
                        static_cast<unsigned long long>(file_size));
    }
    for (const SectionEntry& before : out.first(i)) {
      if (before.tag == section.tag) {
        return make_error(ErrorCode::bad_section, "section %s is in the directory twice", name.text);
      }
      if (section.offset < before.offset + before.size && before.offset < section.offset + section.size) {
        return make_error(ErrorCode::bad_section, "section %s at %llu lies over section %s", name.text,
                          static_cast<unsigned long long>(section.offset), TagName(before.tag).text);
      }
    }
    const bool known = std::ranges::find(kKnownTags, section.tag) != kKnownTags.end();
    if ((section.flags & ~kSectionNeeded) != 0 || ((section.flags & kSectionNeeded) != 0 && !known)) {
      return make_error(ErrorCode::unsupported, "section %s has flags 0x%x, this build does not know %s", name.text,
                        section.flags, known ? "them" : "a section it cannot do without");
    }
    out[i] = section;
  }
  for (const std::uint32_t needed : {kTagTensors, kTagSegments, kTagMeta}) {
    if (find_section(out, needed) == nullptr) {
      return make_error(ErrorCode::bad_section, "section %s is missing from the directory", TagName(needed).text);
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
  if (Status s = check_size(name.text, bytes.size(), section.size); !s) return s;
  return check_crc(name.text, bytes, section.crc);
}

Status read_layer_index(const Header& header, std::span<const std::byte> bytes, std::uint64_t file_size,
                        std::span<LayerEntry> out) {
  if (Status s = check_size("layer index", bytes.size(), std::uint64_t{header.n_layers} * kLayerEntrySize); !s) {
    return s;
  }
  if (out.size() != header.n_layers) {
    return make_error(ErrorCode::bad_argument, "layer index: room for %zu entries, it has %u", out.size(),
                      header.n_layers);
  }
  if (Status s = check_crc("layer index", bytes, header.layer_index_crc); !s) return s;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::byte* at = bytes.data() + i * kLayerEntrySize;
    const LayerEntry layer = decode<LayerEntry>(at);
    if (layer.offset < kHeaderSize || !fits(layer.offset, layer.stored_size, file_size)) {
      return make_error(ErrorCode::bad_index, "layer %zu at %llu, %u bytes long, is not within bytes %u to %llu", i,
                        static_cast<unsigned long long>(layer.offset), layer.stored_size, kHeaderSize,
                        static_cast<unsigned long long>(file_size));
    }
    if (layer.quant != static_cast<std::uint8_t>(FormatId::mixed) &&
        format_index(static_cast<FormatId>(layer.quant)) < 0) {
      return make_error(ErrorCode::unsupported, "layer %zu: quantization type %u is not known", i, layer.quant);
    }
    if (layer.compression > Compression::zstd) {
      return make_error(ErrorCode::unsupported, "layer %zu: compression type %u is not known", i,
                        static_cast<unsigned>(layer.compression));
    }
    if (!std::isfinite(layer.importance)) {
      return make_error(ErrorCode::bad_index, "layer %zu: importance is not a finite number", i);
    }
    if (const auto reserved = load_le<std::uint32_t>(at + 28); reserved != 0) {
      return make_error(ErrorCode::unsupported, "layer %zu: reserved bytes 28-31 hold 0x%x, not 0", i, reserved);
    }
    out[i] = layer;
  }
  return {};
}

Status read_rope(const Header& header, std::span<const std::byte> bytes, std::span<float> out) {
  if (bytes.size() != std::uint64_t{header.head_dim} / 2 * sizeof(float) || out.size() != header.head_dim / 2) {
    return make_error(ErrorCode::bad_section, "section ROPE has %zu bytes, head_dim %u makes it %llu", bytes.size(),
                      header.head_dim, static_cast<unsigned long long>(header.head_dim) / 2 * sizeof(float));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto divisor = load_le<float>(bytes.data() + i * sizeof(float));
    if (!std::isfinite(divisor) || divisor <= 0) {
      return make_error(ErrorCode::bad_section, "section ROPE: divisor %zu is %g, it must be positive", i,
                        static_cast<double>(divisor));
    }
    out[i] = divisor;
  }
  return {};
}

}  // namespace qsf
