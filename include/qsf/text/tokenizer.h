// The tokenizer, from text to token ids and back. The tables of the TOKN section (docs/reference/format-tokenizer.md)
// are sorted and checked at open, so a tokenizer needs no memory except the section and a scratch of fixed size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "qsf/base/result.h"

namespace qsf {

enum class TokenizerKind : std::uint32_t {
  byte_bpe = 0,   // byte-level BPE: a pre-tokenizer pattern, merges by rank (GPT-2, Llama 3, Qwen)
  spm_bpe = 1,    // SentencePiece BPE: merges by score, byte fall-back (Llama 2, Mistral, Gemma, llama2.c)
  unigram = 2,    // SentencePiece unigram: the likeliest tokens, byte fall-back
  wordpiece = 3,  // repeatedly, the longest token that begins the rest of a word (BERT)
};
inline constexpr TokenizerKind kLastTokenizerKind = TokenizerKind::wordpiece;

/// A step of a text's normalization. The file states the order of the steps.
enum class NormalizerOp : std::uint16_t {
  nfc = 1,
  nfd = 2,
  nfkc = 3,
  nfkd = 4,
  lowercase = 5,
  strip_marks = 6,    // all marks
  strip_accents = 7,  // marks without a width of their own
  prepend = 8,        // adds a text before a text that is not empty
  replace = 9,        // replaces one text by another
  clean = 10,         // as BERT: removes controls; white space becomes a space
  space_ideographs = 11,
  char_map = 12,     // SentencePiece's precompiled_charsmap; see text/char_map.h
  cluster_map = 13,  // the same map as Hugging Face's Precompiled reads it: by grapheme clusters
  join_spaces = 14,  // a run of spaces becomes one
};
inline constexpr NormalizerOp kLastNormalizerOp = NormalizerOp::join_spaces;

/// Whether the second text of the step is a character map.
constexpr bool has_char_map(NormalizerOp op) { return op == NormalizerOp::char_map || op == NormalizerOp::cluster_map; }

/// The purpose of a token, with the numbers of GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown = 2,       // replaces characters that the vocabulary cannot spell (spm_bpe)
  control = 3,       // such as begin and end: found in text only on request, never printed
  user_defined = 4,  // added to the vocabulary: always found in text, before merges
  unused = 5,
  byte = 6,  // <0x00> ... <0xFF>, the byte fall-back of spm_bpe
};

/// How an added token is found in a text, with the names of tokenizer.json. The numbers are bits.
enum class TokenAttribute : std::uint8_t {
  lstrip = 1,       // takes the white space before it
  rstrip = 2,       // takes the white space after it
  single_word = 4,  // not found next to a character of a word
  normalized = 8,   // found in the normalized text, after the tokens without this attribute
};
inline constexpr std::uint8_t kAllTokenAttributes = 15;

/// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

class Tokenizer {
 public:
  /// The bytes of scratch for encode(), which refuses a text that needs more.
  static constexpr std::size_t kScratchBytes = 256 * 1024;

  Tokenizer() = default;
  /// Returns the tokenizer of a TOKN section, which must outlive it at the same address. Checks every offset, id and
  /// order in one pass. Fails with bad_tokenizer, or with unsupported for an unknown version, kind or pattern.
  static Result<Tokenizer> open(std::span<const std::byte> section, std::uint32_t vocab_size);

  /// Writes the ids of `text` to `out` and returns their number. With `special`, control tokens such as <|endoftext|>
  /// in the text become their ids; else they are ordinary text. User-defined tokens always become their ids. `plain`
  /// has ascending ranges that do not overlap. No control token is found in them, and no user-defined token that also
  /// occurs in the text outside of them, except white space. `begin`, if given, is the first id; a text whose first
  /// token it is does not get it twice. No other token is added.
  /// `scratch` has kScratchBytes. Errors: context_full if `out` is too short; bad_text for invalid UTF-8, and for a
  /// character that an spm_bpe vocabulary can neither spell nor replace by its unknown token; unsupported for a run
  /// longer than `scratch` whose end affects the merges at its beginning, and for a text that needs more work than
  /// text/text_work.h allows; cancelled soon after any thread sets `cancel` (null: never); bad_argument for ranges out
  /// of order.
  Result<std::uint32_t> encode(std::string_view text, bool special, std::span<std::uint32_t> out,
                               std::span<std::byte> scratch, std::span<const TextRange> plain = {},
                               const std::atomic<bool>* cancel = nullptr,
                               std::optional<std::uint32_t> begin = {}) const;

  /// Returns the bytes of a token, which may be a part of a character; empty for control and unused tokens and for ids
  /// without a token. The view is of the section.
  std::string_view bytes(std::uint32_t id) const;

  /// Returns the text of a control token, such as <|endoftext|>. The view is of the section.
  std::string_view control_text(std::uint32_t id) const { return stored(id); }
  bool is_control(std::uint32_t id) const;             // such as begin and end: never printed
  bool is_added(std::uint32_t id) const;               // a control or user-defined token: no merge makes it
  bool add_bos() const { return (flags_ & 1u) != 0; }  // the model expects its begin token before a prompt
  bool add_eos() const { return (flags_ & 8u) != 0; }  // and its end token after it
  /// Whether the tokens of a text begin with a space that it does not have. Hosts drop one space at the text's start.
  bool strips_leading_space() const { return (flags_ & 2u) != 0; }
  bool open_for_use() const { return !section_.empty(); }
  std::uint32_t n_tokens() const { return n_tokens_; }

 private:
  friend class AddedTokens;
  friend class Encoder;

  std::string_view stored(std::uint32_t id) const;
  TokenType type(std::uint32_t id) const { return static_cast<TokenType>(types_[id]); }
  Status check_tokens() const;
  Status check_order(const std::byte* ids, std::uint32_t n, const char* name) const;
  Status check_merges() const;

  std::span<const std::byte> section_;
  TokenizerKind kind_ = TokenizerKind::byte_bpe;
  std::uint32_t flags_ = 0;
  std::uint32_t n_tokens_ = 0, n_sorted_ = 0, n_added_ = 0, n_merges_ = 0;
  std::uint32_t pattern_ = 0;  // byte_bpe: a row of kPretokenizers
  std::uint32_t unknown_ = 0, max_word_ = 0;
  double unknown_score_ = 0;   // unigram
  bool splits_words_ = false;  // spm_bpe, unigram: no token has a space after another character
  // The section's tables (docs/reference/format-tokenizer.md):
  const std::byte* begins_ = nullptr;        // u32 [n_tokens + 1] into the blob
  const std::byte* bytes_ = nullptr;         // u32 [256] id of a single byte
  const std::byte* sorted_ = nullptr;        // u32 [n_sorted] ids by their bytes
  const std::byte* added_ = nullptr;         // u32 [n_added] ids by their bytes
  const std::byte* merge_begins_ = nullptr;  // u32 [n_tokens + 1] into the merges, by left id
  const std::byte* merges_ = nullptr;        // u64 [n_merges]
  const std::byte* scores_ = nullptr;        // f32 [n_tokens]
  const std::byte* types_ = nullptr;         // u8 [n_tokens]
  const std::byte* attributes_ = nullptr;    // u8 [n_added], in the order of `added`; null: none has any
  std::span<const std::byte> normalizer_;
  std::string_view blob_;
};

}  // namespace qsf
