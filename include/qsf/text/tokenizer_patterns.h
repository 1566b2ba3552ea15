// The known pre-tokenizers, as regular expressions of tokenizer.json. kPretokenizers lists them.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace qsf::pattern {

/// The pattern of Hugging Face's ByteLevel with use_regex.
inline constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// The pattern of Digits with individual_digits.
inline constexpr std::string_view kDigits = R"(\p{N})";
/// The pattern of Punctuation, for runs of punctuation.
inline constexpr std::string_view kPunctuation = R"([\p{P}$+<=>^`|~]+)";
/// llama.cpp's variant for a GGUF file that names no pre-tokenizer.
inline constexpr std::string_view kPlainPunctuation = R"([\p{P}$+<=>^|~]+)";
inline constexpr std::string_view kNumbers = R"(\p{N}+)";
inline constexpr std::string_view kThreeDigits = R"([0-9][0-9][0-9])";
inline constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kNumbersOfThree = R"(\p{N}{1,3})";
inline constexpr std::string_view kLineBreak = R"([\r\n])";
inline constexpr std::string_view kLetters = R"(\s?\p{L}+)";
inline constexpr std::string_view kMarks = R"(\s?\p{P}+)";
inline constexpr std::string_view kWhiteTail = R"(\s+$)";
inline constexpr std::string_view kEastAsian = R"([一-龥ࠀ-一가-퟿]+)";
inline constexpr std::string_view kHanKana = R"([一-龥぀-ゟ゠-ヿ]+)";
inline constexpr std::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kCasedLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
inline constexpr std::string_view kWidePunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";

inline constexpr std::string_view kBloom = R"( ?[^(\s|[.,!?…。，、।۔،])]+)";
inline constexpr std::string_view kLines = R"([^\n]+|[\n]+)";
inline constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
/// Words with single spaces between them are one pre-token.
inline constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
inline constexpr std::string_view kKimiK2 =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kMiniCpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kScripts =
    R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)";
inline constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
/// Qwen2's without English contractions.
inline constexpr std::string_view kUfakzeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace qsf::pattern

namespace qsf {

inline constexpr std::size_t kMaxPasses = 6;

struct Pretokenizer {
  std::uint32_t id;  // as in the TOKN section; the row's place
  std::string_view name;
  std::array<std::string_view, kMaxPasses> steps;  // each cuts the pieces of the previous one; the rest are empty

  constexpr Pretokenizer(std::uint32_t id_, std::string_view name_, std::initializer_list<std::string_view> steps_)
      : id(id_), name(name_) {
    auto from = steps_.begin();
    for (std::string_view& step : steps) step = from == steps_.end() ? std::string_view("") : *from++;
  }
};

inline constexpr std::array kPretokenizers{
    Pretokenizer{0, "gpt2", {pattern::kGpt2}},
    Pretokenizer{1, "gpt2-digits", {pattern::kDigits, pattern::kGpt2}},
    Pretokenizer{2, "llama3", {pattern::kLlama3}},
    Pretokenizer{3, "qwen2", {pattern::kQwen2}},
    Pretokenizer{4, "qwen3.5", {pattern::kQwen35}},
    Pretokenizer{5, "tekken", {pattern::kTekken}},
    Pretokenizer{6, "o200k", {pattern::kO200k}},
    Pretokenizer{7, "deepseek-v3", {pattern::kNumbersOfThree, pattern::kHanKana, pattern::kDeepseekV3}},
    Pretokenizer{8,
                 "deepseek-coder",
                 {pattern::kLineBreak, pattern::kLetters, pattern::kMarks, pattern::kEastAsian, pattern::kDigits}},
    Pretokenizer{9,
                 "deepseek-llm",
                 {pattern::kLineBreak, pattern::kCasedLetters, pattern::kWidePunctuation, pattern::kWhiteTail,
                  pattern::kEastAsian, pattern::kDigits}},
    Pretokenizer{10, "falcon", {pattern::kPunctuation, pattern::kGpt2, pattern::kThreeDigits}},
    Pretokenizer{
        11, "ggml-default", {pattern::kPlainPunctuation, pattern::kGpt2, pattern::kNumbers, pattern::kThreeDigits}},
    Pretokenizer{12, "bloom", {pattern::kBloom}},
    Pretokenizer{13, "viking", {pattern::kBloom, pattern::kDigits}},
    Pretokenizer{14, "laguna", {pattern::kLines, pattern::kQwen2}},
    Pretokenizer{15, "seed-coder", {pattern::kSeedCoder}},
    Pretokenizer{16, "bailing", {pattern::kBailing}},
    Pretokenizer{17, "exaone-moe", {pattern::kExaoneMoe}},
    Pretokenizer{18, "kimi-k2", {pattern::kKimiK2}},
    Pretokenizer{19, "minicpm5", {pattern::kNumbersOfThree, pattern::kMiniCpm5}},
    Pretokenizer{20, "youtu", {pattern::kScripts, pattern::kYoutu}},
    Pretokenizer{21, "spark2.5", {pattern::kNumbersOfThree, pattern::kHanKana, pattern::kSpark, pattern::kDigits}},
    Pretokenizer{22, "ufakzeka", {pattern::kUfakzeka}},
};

/// A name in GGUF's tokenizer.ggml.pre, with the defaults of that tokenizer for missing keys.
struct GgufPretokenizer {
  std::string_view name;
  std::uint32_t id;
  bool ignore_merges = false;
  bool add_bos = false;
};

/// The first row with a number and a treatment of merges is the name that a written GGUF file has.
inline constexpr std::array kGgufPretokenizers{
    GgufPretokenizer{"gpt-2", 0},
    GgufPretokenizer{"phi-2", 0},
    GgufPretokenizer{"mpt", 0},
    GgufPretokenizer{"olmo", 0},
    GgufPretokenizer{"jais", 0},
    GgufPretokenizer{"trillion", 0},
    GgufPretokenizer{"mellum", 0},
    GgufPretokenizer{"modern-bert", 0},
    GgufPretokenizer{"exaone4", 0},
    GgufPretokenizer{"granite-docling", 0},
    GgufPretokenizer{"roberta-bpe", 0},
    GgufPretokenizer{"jina-v1-en", 0},
    GgufPretokenizer{"jina-v2-code", 0},
    GgufPretokenizer{"jina-v2-es", 0},
    GgufPretokenizer{"jina-v2-de", 0},
    GgufPretokenizer{"jina-es", 0},
    GgufPretokenizer{"jina-de", 0},
    GgufPretokenizer{"gigachat", 0},
    GgufPretokenizer{"a.x-4.0", 0},
    GgufPretokenizer{"smollm", 1},
    GgufPretokenizer{"refact", 1},
    GgufPretokenizer{"starcoder", 1},
    GgufPretokenizer{"command-r", 1},
    GgufPretokenizer{"codeshell", 1},
    GgufPretokenizer{"exaone", 1},
    GgufPretokenizer{"minerva-7b", 1},
    GgufPretokenizer{"mellum2", 1},
    GgufPretokenizer{"llama3", 2, true, true},
    GgufPretokenizer{"llama-v3", 2, true, true},
    GgufPretokenizer{"llama-bpe", 2, true, true},
    GgufPretokenizer{"lfm2", 2, true, true},
    GgufPretokenizer{"falcon3", 2, true, true},
    GgufPretokenizer{"falcon-h1", 2, true, true},
    GgufPretokenizer{"pixtral", 2, true, true},
    GgufPretokenizer{"midm-2.0", 2, true, true},
    GgufPretokenizer{"jina-v5-nano", 2, true, true},
    GgufPretokenizer{"smaug-bpe", 2},
    GgufPretokenizer{"dbrx", 2},
    GgufPretokenizer{"glm4", 2},
    GgufPretokenizer{"chatglm-bpe", 2},
    GgufPretokenizer{"qwen2", 3},
    GgufPretokenizer{"deepseek-r1-qwen", 3},
    GgufPretokenizer{"stablelm2", 3},
    GgufPretokenizer{"hunyuan", 3},
    GgufPretokenizer{"megrez", 3},
    GgufPretokenizer{"kormo", 3},
    GgufPretokenizer{"f2llmv2", 3},
    GgufPretokenizer{"grok-2", 3},
    GgufPretokenizer{"solar-open", 3},
    GgufPretokenizer{"qwen35", 4},
    GgufPretokenizer{"tekken", 5, true, true},
    GgufPretokenizer{"gpt-4o", 6},
    GgufPretokenizer{"llama4", 6},
    GgufPretokenizer{"minimax-m2", 6},
    GgufPretokenizer{"kanana2", 6},
    GgufPretokenizer{"talkie", 6},
    GgufPretokenizer{"granite-embed-multi-97m", 6, true},
    GgufPretokenizer{"deepseek-v3", 7},
    GgufPretokenizer{"hunyuan-dense", 7},
    GgufPretokenizer{"hy_v4", 7},
    GgufPretokenizer{"joyai-llm", 7},
    GgufPretokenizer{"deepseek-coder", 8},
    GgufPretokenizer{"deepseek-llm", 9},
    GgufPretokenizer{"falcon", 10},
    GgufPretokenizer{"default", 11},
    GgufPretokenizer{"bloom", 12},
    GgufPretokenizer{"gpt3-finnish", 12},
    GgufPretokenizer{"poro-chat", 12},
    GgufPretokenizer{"viking", 13},
    GgufPretokenizer{"laguna", 14},
    GgufPretokenizer{"seed-coder", 15},
    GgufPretokenizer{"bailingmoe", 16},
    GgufPretokenizer{"bailingmoe2", 16},
    GgufPretokenizer{"llada-moe", 16},
    GgufPretokenizer{"exaone-moe", 17},
    GgufPretokenizer{"kimi-k2", 18},
    GgufPretokenizer{"minicpm5", 19, true},
    GgufPretokenizer{"youtu", 20, true},
    GgufPretokenizer{"spark2_5", 21},
    GgufPretokenizer{"ufakzeka", 22},
};

}  // namespace qsf
