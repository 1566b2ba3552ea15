// Vocabularies as their files have them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/json.h"
#include "converter/model_source.h"
#include "qsf/base/result.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::convert {

/// U+2581, what SentencePiece writes for a space.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
/// The longest token, in bytes, of the tokenizers that lie beside checkpoints.
inline constexpr std::uint32_t kMaxCheckpointToken = 1024;

/// tokenizer.json of Hugging Face tokenizers: BPE of bytes or with byte fall-back, unigram, WordPiece. unsupported,
/// naming it, for what else there is. `config` is tokenizer_config.json, or null.
Result<TokenizerSource> read_tokenizer_json(const Json& json, const Json& config);

/// A file of tiktoken, such as Llama 3's tokenizer.model: a token in base64 and its rank per line.
bool is_tiktoken(std::span<const std::byte> head);
Result<TokenizerSource> read_tiktoken(std::span<const std::byte> bytes);

/// tokenizer.model of SentencePiece (sentencepiece_model.proto): BPE and unigram.
Result<TokenizerSource> read_sentencepiece(std::span<const std::byte> bytes);

/// tokenizer.bin of llama2.c: int32 longest length, then for every token f32 score, int32 length, bytes.
Result<TokenizerSource> read_llama2c_tokenizer(std::span<const std::byte> bytes);

/// What lies beside a qwen3.c checkpoint as NAME.tokenizer: uint32 longest length, begin and end token, then for every
/// token f32 score, uint32 length, bytes. Its merges are found again from the scores' order. Byte-level BPE that cuts
/// as Qwen2 does.
struct Qwen3cTokenizer {
  TokenizerSource source;
  std::uint32_t bos = kNoToken, eos = kNoToken;
};
Result<Qwen3cTokenizer> read_qwen3c_tokenizer(std::span<const std::byte> bytes, std::uint32_t vocab_size);

/// Fills model.tokenizer, and model.config.eos where the tokenizer decides among several, from the files in a Hugging
/// Face directory. Without any of them there is a warning and no tokenizer.
Status read_tokenizer_of_folder(const InputFolder& folder, ModelSource& model);

/// The same from one file, whose type is recognised by its content.
Status read_tokenizer(const Input& file, ModelSource& model);

/// Gives the tokenizer, if there is one, as many tokens as the embedding has rows: padding rows get unused tokens. The
/// model gets the begin and end tokens that only the tokenizer names.
/// bad_input when it has more.
Status fit_tokenizer(ModelSource& model);

/// unsupported for a text that no tokenizer can have, so that it is refused before it is copied. `id` is for the
/// sentence.
Status check_token_text(std::uint64_t id, std::string_view text);

/// What a token's id must be below when so many tokens are told of: some may be unused, most not.
constexpr std::uint64_t most_ids(std::uint64_t n_tokens) {
  return std::min<std::uint64_t>(2 * n_tokens + (1 << 16), kMaxVocab);
}

/// A special token's text in tokenizer_config.json: a text, or an object with "content". Empty for none.
std::string token_text(const Json& config, std::string_view key);

/// "<0x00>" to "<0xFF>".
bool is_byte_token(std::string_view text);

}  // namespace qsf::convert
