// Readers of vocabularies from their files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/files/json.h"
#include "converter/model/model_source.h"
#include "qsf/base/result.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::convert {

/// U+2581, SentencePiece's mark for a space.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";
/// The longest token, in bytes, of the tokenizers next to checkpoints.
inline constexpr std::uint32_t kMaxCheckpointToken = 1024;

/// Reads tokenizer.json of Hugging Face tokenizers: BPE of bytes or with byte fallback, unigram, WordPiece. `config` is
/// tokenizer_config.json, or null. Returns unsupported, by name, for anything else.
Result<TokenizerSource> read_tokenizer_json(const Json& json, const Json& config);

/// Returns the attributes of an added token, an entry of tokenizer.json or tokenizer_config.json, as bits.
std::uint8_t attributes_of(Fields& token);

/// A file of tiktoken, such as Llama 3's tokenizer.model. Each line is a token in base64 and its rank.
bool is_tiktoken(std::span<const std::byte> head);
Result<TokenizerSource> read_tiktoken(std::span<const std::byte> bytes);

/// Scores the tokens of BPE over characters, and removes the merges. A token has a higher score if an earlier merge
/// makes it.
void score_by_merges(TokenizerSource& out);

/// Decodes base64. Returns false if the text is not base64, or empty.
bool from_base64(std::string_view text, std::string& out);

/// Reads tokenizer.model of SentencePiece (sentencepiece_model.proto): BPE and unigram.
Result<TokenizerSource> read_sentencepiece(std::span<const std::byte> bytes);

/// Reads tokenizer.bin of llama2.c: int32 longest length, then for each token f32 score, int32 length, bytes.
Result<TokenizerSource> read_llama2c_tokenizer(std::span<const std::byte> bytes);

/// NAME.tokenizer next to a qwen3.c checkpoint: uint32 longest length, begin and end token, then for each token f32
/// score, uint32 length, bytes. It is byte-level BPE that splits text as Qwen2 does. Its merges are recovered from the
/// order of the scores.
struct Qwen3cTokenizer {
  TokenizerSource source;
  std::uint32_t bos = kNoToken, eos = kNoToken;
};
Result<Qwen3cTokenizer> read_qwen3c_tokenizer(std::span<const std::byte> bytes, std::uint32_t vocab_size);

/// Fills model.tokenizer from the files in a Hugging Face directory, and model.config.eos if the tokenizer decides
/// among several. Without such files there is a warning and no tokenizer. `config` is tokenizer_config.json, or null.
Status read_tokenizer_of_folder(const InputFolder& folder, const Json& config, LoadedModel& model);

/// Fills model.tokenizer from one file, whose type is recognised by its content. Keeps the model's chat template.
Status read_tokenizer(const Input& file, LoadedModel& model);

/// GGUF's name of the pre-tokenizer of files that do not name one.
inline constexpr std::string_view kDefaultPattern = "default";

/// Gives the tokenizer, if there is one, as many tokens as the embedding has rows: padding rows get unused tokens.
/// Gives the model the begin and end tokens that only the tokenizer names, and a warning if its pre-tokenizer is not
/// named. Returns bad_input if the tokenizer has more tokens than rows.
Status fit_tokenizer(LoadedModel& model);

/// Returns unsupported for a text that no tokenizer can have, before it is copied. `id` is for the error sentence.
Status check_token_text(std::uint64_t id, std::string_view text);

/// Returns the exclusive limit of ids in a file with so many tokens. Some ids may be unused, but not most.
constexpr std::uint64_t most_ids(std::uint64_t n_tokens) {
  return std::min<std::uint64_t>(2 * n_tokens + (1 << 16), kMaxVocab);
}

/// Returns a special token's text in tokenizer_config.json: a text, or an object with "content". Empty for none.
std::string token_text(const Json& config, std::string_view key);

/// Returns whether the text is one of "<0x00>" to "<0xFF>".
bool is_byte_token(std::string_view text);

}  // namespace qsf::convert
