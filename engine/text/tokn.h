// The TOKN section as structures, for the tokenizer and its builder. docs/reference/format-tokenizer.md describes the
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "qsf/base/bytes.h"
#include "qsf/text/tokenizer.h"

namespace qsf::tokn {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kMaxTokenBytes = 1024;
inline constexpr std::uint32_t kMaxTokens = 1u << 22;
inline constexpr std::uint32_t kMaxMerges = 1u << 20;
inline constexpr std::uint32_t kNone = 0xffffffffu;

inline constexpr std::uint32_t kAddBos = 1u << 0;
inline constexpr std::uint32_t kAddSpacePrefix = 1u << 1;
inline constexpr std::uint32_t kIgnoreMerges = 1u << 2;
inline constexpr std::uint32_t kAddEos = 1u << 3;
inline constexpr std::uint32_t kTrimSpaces = 1u << 4;
inline constexpr std::uint32_t kPrefixUnlessSpace = 1u << 5;
inline constexpr std::uint32_t kPrefixOnce = 1u << 6;
inline constexpr std::uint32_t kAttributes = 1u << 7;
inline constexpr std::uint32_t kOfWords =
    kAddSpacePrefix | kTrimSpaces | kPrefixUnlessSpace | kPrefixOnce;  // not for byte_bpe
inline constexpr std::uint32_t kAllFlags = kAddBos | kIgnoreMerges | kAddEos | kOfWords | kAttributes;
inline constexpr std::uint32_t kMaxWord = 1000;
inline constexpr std::uint32_t kMaxCharMap = 1u << 24;  // bytes

struct Header {
  std::uint32_t version;
  std::uint32_t kind;     // TokenizerKind
  std::uint32_t pattern;  // Pretokenizer::id for byte_bpe, else 0
  std::uint32_t flags;
  std::uint32_t n_tokens;
  std::uint32_t n_sorted;
  std::uint32_t n_added;
  std::uint32_t n_merges;
  std::uint32_t unknown;    // id of the unknown token, or kNone
  std::uint32_t blob_size;  // bytes of all tokens
  std::uint32_t normalizer_size;
  std::uint32_t max_word;  // wordpiece: most characters in a word
  std::uint32_t reserved[4];
};
static_assert(sizeof(Header) == 64);

/// The bytes of each table, in the order of the tables after the header.
struct Sizes {
  std::uint64_t begins, bytes, sorted, added, merge_begins, merges, scores, types, attributes, normalizer, blob;

  constexpr std::uint64_t total() const {
    return sizeof(Header) + begins + bytes + sorted + added + merge_begins + merges + scores + types + attributes +
           normalizer + blob;
  }
};
constexpr Sizes sizes(const Header& h) {
  const auto kind = static_cast<TokenizerKind>(h.kind);
  const bool merges = kind == TokenizerKind::byte_bpe;
  const bool scores = kind == TokenizerKind::spm_bpe || kind == TokenizerKind::unigram;
  const std::uint64_t ends = std::uint64_t{h.n_tokens} + 1;
  return {.begins = 4 * ends,
          .bytes = 4 * 256,
          .sorted = std::uint64_t{4} * h.n_sorted,
          .added = std::uint64_t{4} * h.n_added,
          .merge_begins = merges ? 4 * ends : 0,
          .merges = std::uint64_t{8} * h.n_merges,
          .scores = scores ? std::uint64_t{4} * h.n_tokens : 0,
          .types = h.n_tokens,
          .attributes = (h.flags & kAttributes) != 0 ? h.n_added : 0u,
          .normalizer = h.normalizer_size,
          .blob = h.blob_size};
}

/// A merge, stored with its left token: from the top, 22 bits of the right id, 22 bits of the result's id, 20 bits of
/// rank. The order of the numbers is that of the right ids.
struct Merge {
  std::uint32_t right, result, rank;
};
constexpr std::uint64_t pack(Merge m) { return std::uint64_t{m.right} << 42 | std::uint64_t{m.result} << 20 | m.rank; }
constexpr Merge unpack(std::uint64_t bits) {
  return {static_cast<std::uint32_t>(bits >> 42), static_cast<std::uint32_t>(bits >> 20) & 0x3fffffu,
          static_cast<std::uint32_t>(bits) & 0xfffffu};
}

/// Return entry i of a table. Tables need no alignment.
inline std::uint32_t u32_at(const std::byte* table, std::uint32_t i) {
  return load_le<std::uint32_t>(table + std::size_t{4} * i);
}
inline std::uint64_t u64_at(const std::byte* table, std::uint32_t i) {
  return load_le<std::uint64_t>(table + std::size_t{8} * i);
}
inline float f32_at(const std::byte* table, std::uint32_t i) { return load_le<float>(table + std::size_t{4} * i); }

}  // namespace qsf::tokn
