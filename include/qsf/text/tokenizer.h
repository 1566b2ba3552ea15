// Text to token ids and back. The TOKN section (docs/format-tokenizer.md) holds tables that are ready for use, sorted
// and checked at open, so a tokenizer needs no memory but the section itself and a fixed scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

enum class TokenizerKind : std::uint32_t {
  byte_bpe = 0,   // byte-level BPE: a pre-tokenizer pattern, merges by rank (GPT-2, Llama 3, Qwen)
  spm_bpe = 1,    // SentencePiece BPE: merges by score, byte fall-back (Llama 2, Mistral, Gemma, llama2.c)
  unigram = 2,    // SentencePiece unigram: the likeliest tokens, byte fall-back
  wordpiece = 3,  // the longest token that a word begins with, again and again (BERT)
};
inline constexpr TokenizerKind kLastTokenizerKind = TokenizerKind::wordpiece;

/// What is done to a text before it is cut, in the order that the file gives.
enum class NormalizerOp : std::uint16_t {
  nfc = 1,
  nfd = 2,
  nfkc = 3,
  nfkd = 4,
  lowercase = 5,
  strip_marks = 6,    // all marks
  strip_accents = 7,  // marks without a width of their own
  prepend = 8,        // a text in front of what is not empty
  replace = 9,        // a text by another
  clean = 10,         // BERT's: controls go, white space becomes a space
  space_ideographs = 11,
  char_map = 12,  // SentencePiece's precompiled_charsmap; see text/char_map.h
};
inline constexpr NormalizerOp kLastNormalizerOp = NormalizerOp::char_map;

/// What a token is for, with the numbers of GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown = 2,       // stands for what the vocabulary cannot spell (spm_bpe)
  control = 3,       // begin, end and the like: found in text only when asked for, never printed
  user_defined = 4,  // added to the vocabulary: always found in text before anything is merged
  unused = 5,
  byte = 6,  // <0x00> ... <0xFF>, what spm_bpe falls back to
};

struct Pretokenizer;

/// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

class Tokenizer {
 public:
  /// Memory for encode() beside the section; encode refuses a text that needs more.
  static constexpr std::size_t kScratchBytes = 256 * 1024;

  Tokenizer() = default;
  /// `section` must stay where it is. Checks every offset, id and order in one pass; bad_tokenizer otherwise,
  /// unsupported for a version, kind or pattern that this build does not know.
  static Result<Tokenizer> open(std::span<const std::byte> section, std::uint32_t vocab_size);

  /// Ids of `text`, nothing added in front or behind. With `special`, control tokens such as <|endoftext|> in the text
  /// become their ids; without, they are ordinary text. User-defined tokens always become theirs. Gives the count;
  /// context_full when `out` is too short, bad_text for invalid UTF-8 and for a character that an spm_bpe vocabulary
  /// can neither spell nor call unknown, unsupported for a run longer than `scratch` (kScratchBytes) whose end decides
  /// how its beginning is merged. What lies in `plain`, ranges that ascend and do not meet, is text and no more: no
  /// control token is found there, and no user-defined one that stands in the text outside of them, but for white
  /// space.
  Result<std::uint32_t> encode(std::string_view text, bool special, std::span<std::uint32_t> out,
                               std::span<std::byte> scratch, std::span<const TextRange> plain = {}) const;

  /// The bytes that a token stands for: part of a character at times; empty for control and unused tokens and for
  /// ids without one. The view is into the section.
  std::string_view bytes(std::uint32_t id) const;

  bool is_control(std::uint32_t id) const;             // begin, end and the like: never printed
  bool add_bos() const { return (flags_ & 1u) != 0; }  // the model expects its begin token in front of a prompt
  bool add_eos() const { return (flags_ & 8u) != 0; }  // and its end token behind it
  /// A text begins with a space that it does not have: whoever prints tokens drops one space at a text's start.
  bool strips_leading_space() const { return (flags_ & 2u) != 0; }
  bool open_for_use() const { return !section_.empty(); }
  std::uint32_t n_tokens() const { return n_tokens_; }

 private:
  friend class Encoder;

  std::string_view stored(std::uint32_t id) const;
  TokenType type(std::uint32_t id) const { return static_cast<TokenType>(types_[id]); }
  Status check_tokens() const;
  Status check_order(const std::byte* ids, std::uint32_t n, const char* name) const;
  Status check_merges() const;

  std::span<const std::byte> section_;
  const Pretokenizer* pretokenizer_ = nullptr;
  TokenizerKind kind_ = TokenizerKind::byte_bpe;
  std::uint32_t flags_ = 0;
  std::uint32_t n_tokens_ = 0, n_sorted_ = 0, n_added_ = 0, n_merges_ = 0;
  std::uint32_t unknown_ = 0, max_word_ = 0;
  double unknown_score_ = 0;   // unigram
  bool splits_words_ = false;  // spm_bpe, unigram: no token has a space behind another character
  // The section's tables (docs/format-tokenizer.md):
  const std::byte* begins_ = nullptr;        // u32 [n_tokens + 1] into the blob
  const std::byte* bytes_ = nullptr;         // u32 [256] id of a single byte
  const std::byte* sorted_ = nullptr;        // u32 [n_sorted] ids by their bytes
  const std::byte* added_ = nullptr;         // u32 [n_added] ids by their bytes
  const std::byte* merge_begins_ = nullptr;  // u32 [n_tokens + 1] into the merges, by left id
  const std::byte* merges_ = nullptr;        // u64 [n_merges]
  const std::byte* scores_ = nullptr;        // f32 [n_tokens]
  const std::byte* types_ = nullptr;         // u8 [n_tokens]
  std::span<const std::byte> normalizer_;
  std::string_view blob_;
};

}  // namespace qsf
