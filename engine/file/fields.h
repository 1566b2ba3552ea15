// The byte offset of each field of a fixed-size structure. One list for each structure serves reading and writing.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "qsf/base/bytes.h"
#include "qsf/file/layout.h"

namespace qsf {

inline constexpr std::uint32_t kMagic = tag("QSF1");  // bytes 0-3
inline constexpr std::uint32_t kVersion = 1;          // bytes 4-7; bytes 8-11 are kHeaderSize
inline constexpr std::uint32_t kHeaderCrcAt = 96;     // over bytes 0-95
inline constexpr std::uint32_t kExtensionAt = 100;
inline constexpr std::uint32_t kExtensionCrcAt = 124;  // over bytes 100-123

template <class S, class T>
concept Is = std::same_as<std::remove_const_t<S>, T>;

template <Is<Header> H, class Visit>
void visit_fields(H& h, Visit&& visit) {
  visit(12, h.arch);
  visit(16, h.n_layers);
  visit(20, h.dim);
  visit(24, h.n_heads);
  visit(28, h.n_kv_heads);
  visit(32, h.vocab_size);
  visit(36, h.max_seq_len);
  visit(40, h.ffn_dim);
  visit(44, h.head_dim);
  visit(48, h.quant);
  visit(49, h.activation);
  visit(50, h.norm);
  visit(51, h.position);
  visit(52, h.rope_theta);
  visit(56, h.layer_index_offset);
  visit(64, h.embedding_offset);
  visit(72, h.final_offset);
  visit(80, h.bos);
  visit(84, h.eos);
  visit(88, h.pad);
  visit(92, h.file_size_low);
  visit(100, h.directory_offset);
  visit(108, h.n_sections);
  visit(112, h.directory_crc);
  visit(116, h.layer_index_crc);
  visit(120, h.flags);
}

template <Is<LayerEntry> L, class Visit>
void visit_fields(L& l, Visit&& visit) {
  visit(0, l.offset);
  visit(8, l.stored_size);
  visit(12, l.raw_size);
  visit(16, l.quant);
  visit(17, l.compression);
  visit(18, l.n_tensors);
  visit(20, l.crc);
  visit(24, l.importance);  // 28-31 reserved
}

template <Is<SectionEntry> S, class Visit>
void visit_fields(S& s, Visit&& visit) {
  visit(0, s.tag);
  visit(4, s.flags);
  visit(8, s.offset);
  visit(16, s.size);
  visit(20, s.crc);
}

template <Is<TensorEntry> T, class Visit>
void visit_fields(T& t, Visit&& visit) {
  visit(0, t.stage);
  visit(4, t.role);
  visit(5, t.format);
  visit(6, t.layout);  // 7 reserved
  visit(8, t.rows);
  visit(12, t.cols);
  visit(16, t.raw_offset);
  visit(24, t.first_segment);
  visit(28, t.n_segments);
}

template <Is<SegmentEntry> S, class Visit>
void visit_fields(S& s, Visit&& visit) {
  visit(0, s.offset);
  visit(8, s.stored_size);
  visit(12, s.raw_size);
  visit(16, s.raw_begin);
  visit(20, s.crc);
  visit(24, s.stage);
  visit(28, s.compression);
  visit(29, s.flags);  // 30-31 reserved
}

/// The 16 bytes before a tensor in a layer, and before an untied head.
struct TensorHeader {
  std::uint32_t role = 0;
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint16_t reserved = 0;
};
template <Is<TensorHeader> T, class Visit>
void visit_fields(T& t, Visit&& visit) {
  visit(0, t.role);
  visit(4, t.rows);
  visit(8, t.cols);
  visit(12, t.format);
  visit(13, t.layout);
  visit(14, t.reserved);
}

/// The 16 bytes before the embedding.
struct EmbeddingHeader {
  FormatId format = FormatId::f32;
  Layout layout = Layout::rows;
  std::uint16_t reserved = 0;
  std::uint32_t stored_size = 0;  // of the section after this header, lower 32 bits
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
};
template <Is<EmbeddingHeader> E, class Visit>
void visit_fields(E& e, Visit&& visit) {
  visit(0, e.format);
  visit(1, e.layout);
  visit(2, e.reserved);
  visit(4, e.stored_size);
  visit(8, e.rows);
  visit(12, e.cols);
}

/// Returns the structure whose bytes begin at `at`, without any check.
template <class S>
S decode(const std::byte* at) {
  S s;
  visit_fields(s, [at](std::uint32_t offset, auto& field) {
    field = load_le<std::remove_cvref_t<decltype(field)>>(at + offset);
  });
  return s;
}
/// Writes the fields of `s`. Bytes between fields do not change.
template <class S>
void encode(const S& s, std::byte* at) {
  visit_fields(s, [at](std::uint32_t offset, const auto& field) { store_le(at + offset, field); });
}

/// Whether [offset, offset + size) is part of [0, limit).
constexpr bool fits(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

}  // namespace qsf
