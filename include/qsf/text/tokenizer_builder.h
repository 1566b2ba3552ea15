// Construction of a TOKN section from a source's vocabulary, for converters and tests. It allocates.
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

/// The most bytes of a token's text in a source, which may write a space as three bytes.
inline constexpr std::size_t kMaxTokenText = 3 * 1024;

struct NormalizerStep {
  NormalizerOp op{};
  std::string from, to;  // `from` for replace; `to` for replace and prepend, and the map of both maps
};

struct TokenizerSource {
  struct Token {
    std::string text;  // normal byte_bpe tokens in GPT-2's byte alphabet ("Ġthe"), all others in UTF-8 ("▁the",
                       // "<0x0A>"; wordpiece: "▁the", and "ing" for "##ing")
    float score = 0;   // spm_bpe and unigram
    TokenType type = TokenType::normal;
    std::uint8_t attributes = 0;  // of an added token: bits of TokenAttribute
  };

  TokenizerKind kind = TokenizerKind::byte_bpe;
  /// byte_bpe: the name in GGUF's tokenizer.ggml.pre ("llama-bpe"), or the regular expressions of tokenizer.json. The
  /// steps of a sequence are joined by '\n'. Split adds its Regex, ByteLevel with use_regex adds kByteLevelPattern and
  /// without it nothing, Digits with individual_digits adds kDigitsPattern, and Punctuation in runs adds
  /// pattern::kPunctuation. CR and LF are written \r and \n. Other kinds: empty.
  std::string pattern;
  /// byte_bpe: a pre-token that is a token becomes that token without merges. GGUF's names for Llama 3 imply it.
  bool ignore_merges = false;
  bool add_bos = false;      // the model expects its begin token before a prompt
  bool add_eos = false;      // and its end token after it
  bool tiktoken = false;     // byte_bpe: tokens are bytes; all pairs that spell a token are merges, ranked by its id
  bool trim_spaces = false;  // spm_bpe, unigram: removes spaces at the ends; several spaces become one
  bool prefix_unless_space = false;  // with add_space_prefix: except before a space
  bool prefix_once = false;          // with add_space_prefix: except after an added token
  bool add_space_prefix = false;     // all but byte_bpe: adds a space before a text
  /// The begin and end tokens, if the source names them; used if the model does not name them.
  std::optional<std::uint32_t> bos{}, eos{};
  std::uint32_t max_word = 100;  // wordpiece: a word with more characters is unknown
  std::vector<NormalizerStep> normalizer{};
  std::vector<Token> tokens;  // by id; ids without a token: TokenType::unused and an empty text
  std::vector<std::pair<std::string, std::string>> merges;  // byte_bpe: by rank, in the tokens' alphabet
};

/// Returns the section's bytes. Fails with bad_tokenizer if the source contradicts itself, such as by a merge of
/// unknown tokens or two normal tokens with one text; with unsupported for an unknown pattern or a size beyond the
/// format.
Result<std::vector<std::byte>> build_tokenizer(const TokenizerSource& source);

/// Returns the inverse, without begin and end tokens. Fails as Tokenizer::open does. A section that build_tokenizer()
/// did not make can give a source of another section.
Result<TokenizerSource> tokenizer_source(std::span<const std::byte> section, std::uint32_t vocab_size);

}  // namespace qsf
