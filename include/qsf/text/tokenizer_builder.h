// Makes a TOKN section from a vocabulary as its source has it. Allocates: for converters and tests, not for the engine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qsf/base/result.h"
#include "qsf/text/tokenizer.h"
#include "qsf/text/tokenizer_patterns.h"

namespace qsf {

inline constexpr std::string_view kByteLevelPattern = pattern::kGpt2;
inline constexpr std::string_view kDigitsPattern = pattern::kDigits;

/// The most bytes that a token's text may have in a source: its own, in which a space may be written with three.
inline constexpr std::size_t kMaxTokenText = 3 * 1024;

struct NormalizerStep {
  NormalizerOp op{};
  std::string from, to;  // of replace; `to` of prepend, and of char_map the map
};

struct TokenizerSource {
  struct Token {
    std::string text;  // normal byte_bpe tokens in GPT-2's byte alphabet ("Ġthe"), all others in UTF-8 ("▁the",
                       // "<0x0A>"; wordpiece: "▁the", and "ing" for "##ing")
    float score = 0;   // spm_bpe and unigram
    TokenType type = TokenType::normal;
  };

  TokenizerKind kind = TokenizerKind::byte_bpe;
  /// byte_bpe: the name in GGUF's tokenizer.ggml.pre ("llama-bpe"), or tokenizer.json's regular expressions, the steps
  /// of a sequence joined by '\n': Split gives its Regex, ByteLevel with use_regex kByteLevelPattern (without:
  /// nothing), Digits with individual_digits kDigitsPattern, Punctuation in rows pattern::kPunctuation. CR and LF are
  /// written \r and \n. Other kinds: empty.
  std::string pattern;
  /// byte_bpe: a pre-token that is a token as a whole is not merged up from bytes. GGUF's names for Llama 3 imply it.
  bool ignore_merges = false;
  bool add_bos = false;      // the model expects its begin token in front of a prompt
  bool add_eos = false;      // and its end token behind one
  bool tiktoken = false;     // byte_bpe: tokens are bytes, and all pairs that spell a token are merges, by its id
  bool trim_spaces = false;  // spm_bpe, unigram: spaces at the ends go, rows of them become one
  bool prefix_unless_space = false;  // with add_space_prefix: not where the text begins with one
  bool add_space_prefix = false;     // all but byte_bpe: a text begins with a space that it does not have
  /// The begin and end tokens, where the source names them; for models that do not.
  std::optional<std::uint32_t> bos{}, eos{};
  std::uint32_t max_word = 100;  // wordpiece: a word of more characters is unknown
  std::vector<NormalizerStep> normalizer{};
  std::vector<Token> tokens;  // by id; ids without a token: TokenType::unused and an empty text
  std::vector<std::pair<std::string, std::string>> merges;  // byte_bpe: in order of rank, written as the tokens are
};

/// The section's bytes. bad_tokenizer when the source contradicts itself (a merge of unknown tokens, two normal tokens
/// of one text), unsupported for a pattern that has no scanner or a size beyond the format.
Result<std::vector<std::byte>> build_tokenizer(const TokenizerSource& source);

}  // namespace qsf
