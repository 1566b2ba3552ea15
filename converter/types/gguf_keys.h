// GGUF's words that are not in recipes: one list for reading and writing.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qsf/text/tokenizer.h"

namespace qsf::convert {

/// The types of values, by their numbers in a file.
enum class GgufType : std::uint32_t { u8 = 0, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

}  // namespace qsf::convert

namespace qsf::convert::gguf_key {

inline constexpr std::string_view kArchitecture = "general.architecture", kName = "general.name";
inline constexpr std::string_view kAlignment = "general.alignment";
inline constexpr std::string_view kQuantization = "general.quantization_version", kFileType = "general.file_type";

// Keys after the architecture's name and a point.
inline constexpr std::string_view kNormEpsilon = "attention.layer_norm_rms_epsilon";
inline constexpr std::string_view kGuessingLayers = "nextn_predict_layers";
inline constexpr std::string_view kValueLength = "attention.value_length";
inline constexpr std::string_view kWindow = "attention.sliding_window";
inline constexpr std::string_view kWindowPattern = "attention.sliding_window_pattern";
inline constexpr std::string_view kRopeDims = "rope.dimension_count";
inline constexpr std::string_view kRopeBase = "rope.freq_base";
inline constexpr std::string_view kLocalRopeBase = "rope.freq_base_swa";
inline constexpr std::string_view kScalingType = "rope.scaling.type", kScalingFactor = "rope.scaling.factor";
inline constexpr std::string_view kOldScalingFactor = "rope.scale_linear";
inline constexpr std::string_view kOriginalContext = "rope.scaling.original_context_length";
inline constexpr std::string_view kRotatedFactor = "rope.scaling.attn_factor";

// Names of tensors.
inline constexpr std::string_view kRopeFrequencies = "rope_freqs.weight";
inline constexpr std::string_view kShortFactors = "rope_factors_short.weight";
inline constexpr std::string_view kLongFactors = "rope_factors_long.weight";

inline constexpr std::string_view kChatTemplate = "tokenizer.chat_template";
inline constexpr std::string_view kTokenizer = "tokenizer.ggml.";
// Keys after kTokenizer.
inline constexpr std::string_view kModel = "model", kPre = "pre", kTokens = "tokens", kScores = "scores";
inline constexpr std::string_view kTokenTypes = "token_type", kMerges = "merges";
inline constexpr std::string_view kBos = "bos_token_id", kEos = "eos_token_id", kPad = "padding_token_id";
inline constexpr std::string_view kUnknown = "unknown_token_id", kCls = "cls_token_id", kSep = "seperator_token_id";
inline constexpr std::string_view kAddBos = "add_bos_token", kAddEos = "add_eos_token";
inline constexpr std::string_view kAddSpace = "add_space_prefix", kTrimSpaces = "remove_extra_whitespaces";
inline constexpr std::string_view kCharMap = "precompiled_charsmap";
/// Tokens that end a turn or a message. They end a text, as kEos does.
inline constexpr std::array<std::string_view, 2> kOtherEnds{"eot_token_id", "eom_token_id"};

/// The name of a kind of tokenizer in kModel.
struct TokenizerName {
  std::string_view name;
  TokenizerKind kind;
};
inline constexpr std::array kTokenizerNames{
    TokenizerName{"gpt2", TokenizerKind::byte_bpe},  TokenizerName{"llama", TokenizerKind::spm_bpe},
    TokenizerName{"bert", TokenizerKind::wordpiece}, TokenizerName{"t5", TokenizerKind::unigram},
    TokenizerName{"gemma4", TokenizerKind::spm_bpe},
};

/// Names in kPre of tokenizers that are "gpt2" by kModel, but merge characters by rank, as "gemma4" does.
inline constexpr std::array<std::string_view, 3> kMergedCharacters{"gemma4", "granite-embed-multi-311m", "sarvam-moe"};

/// A name in kPre that is refused, and the reason.
struct RefusedPretokenizer {
  std::string_view name, reason;
};
inline constexpr std::string_view kFromTheRight = "it cuts numbers into threes from the right";
inline constexpr std::array kRefusedPretokenizers{
    RefusedPretokenizer{"superbpe", kFromTheRight},
    RefusedPretokenizer{"afmoe", kFromTheRight},
    RefusedPretokenizer{"tiny_aya", kFromTheRight},
    RefusedPretokenizer{"cohere2moe", kFromTheRight},
    RefusedPretokenizer{"jais-2", "it cuts white space into runs of powers of two"},
    RefusedPretokenizer{"chameleon", "it is for images"},
    RefusedPretokenizer{"whitespace", "its tokens are characters, not bytes"},
};

}  // namespace qsf::convert::gguf_key
