// A GGUF file's tokenizer.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "converter/readers/gguf/gguf.h"
#include "converter/readers/gguf/keys.h"
#include "converter/tokenizers/tokenizers.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

using namespace gguf_key;

std::string token_key(std::string_view key) { return std::string(kTokenizer).append(key); }

/// Reads the merges, and for bytes the pre-tokenizer.
Status read_bpe(const Gguf& gguf, TokenizerSource& out) {
  if (out.kind == TokenizerKind::byte_bpe) {
    out.pattern = gguf.text(token_key(kPre)).value_or(kDefaultPattern);
    for (const GgufPretokenizer& each : kGgufPretokenizers) {
      if (each.name != out.pattern) continue;
      out.ignore_merges = each.ignore_merges;
      out.add_bos = each.add_bos;
    }
    const auto refused = std::ranges::find(kRefusedPretokenizers, out.pattern, &RefusedPretokenizer::name);
    if (refused != kRefusedPretokenizers.end()) {
      return make_error(ErrorCode::unsupported,
                        "GGUF: the pre-tokenizer \"{}\" is not supported, because {}; \"--tokenizer none\" converts "
                        "without a tokenizer",
                        refused->name, refused->reason);
    }
  }
  const std::optional<std::vector<std::string_view>> merges = gguf.texts(token_key(kMerges));
  if (!merges) return make_error(ErrorCode::bad_tokenizer, "GGUF: the key tokenizer.ggml.merges is missing");
  for (const std::string_view merge : *merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return make_error(ErrorCode::bad_tokenizer, "GGUF: merge {} is not two tokens with a space between",
                        out.merges.size());
    }
    QSF_TRY(check_token_text(out.merges.size(), merge));
    out.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return {};
}

/// Gives added tokens the attributes that llama.cpp knows by the names of models, tokenizers and architectures, because
/// no key has them.
void add_attributes(const Gguf& gguf, TokenizerSource& out) {
  const auto names = [&](std::string_view key, std::initializer_list<std::string_view> parts) {
    std::string name(gguf.text(key).value_or(""));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return std::ranges::any_of(parts, [&](std::string_view part) { return name.find(part) != name.npos; });
  };
  const auto give = [&](TokenAttribute attribute, const auto& wanted) {
    for (TokenizerSource::Token& token : out.tokens) {
      if (wanted(token)) token.attributes |= static_cast<std::uint8_t>(attribute);
    }
  };
  const auto is_mask = [](const TokenizerSource::Token& token) { return token.text == "<mask>"; };
  if (names(token_key(kPre), {"jina-v2-de", "jina-v2-es", "jina-v2-code"}) ||
      names(kArchitecture, {"nomic-bert-moe", "jina-bert-v3"})) {
    give(TokenAttribute::lstrip, is_mask);
  } else if (names(kName, {"phi-3", "phi3"})) {
    give(TokenAttribute::rstrip, [](const TokenizerSource::Token& token) {
      const bool added = token.type == TokenType::control || token.type == TokenType::user_defined;
      return (added || token.text == "</s>") && token.text != "<s>" && token.text != "<|endoftext|>";
    });
  } else if (names(kName, {"modern-bert"})) {
    give(TokenAttribute::lstrip, [](const TokenizerSource::Token& token) { return token.text == "[MASK]"; });
  }
}

}  // namespace

Result<std::optional<TokenizerSource>> read_gguf_tokenizer(const Gguf& gguf) {
  const std::optional<std::string_view> model = gguf.text(token_key(kModel));
  const std::optional<std::vector<std::string_view>> texts = gguf.texts(token_key(kTokens));
  if (!model || *model == "no_vocab") return std::optional<TokenizerSource>();
  if (!texts) {
    return make_error(ErrorCode::bad_tokenizer,
                      "GGUF: the key tokenizer.ggml.tokens is missing or no list of at most {} texts", kMaxVocab);
  }
  TokenizerSource out;
  const auto named = std::ranges::find(kTokenizerNames, *model, &TokenizerName::name);
  if (named == kTokenizerNames.end()) {
    return make_error(
        ErrorCode::unsupported,
        "GGUF: the tokenizer \"{:.40}\" is not supported; \"qsf-convert --tokenizer none\" converts without one",
        *model);
  }
  out.kind = named->kind;
  const std::string_view pre = gguf.text(token_key(kPre)).value_or(kDefaultPattern);
  const bool ranked = *model == "gemma4" || (out.kind == TokenizerKind::byte_bpe &&
                                             std::ranges::find(kMergedCharacters, pre) != kMergedCharacters.end());
  if (ranked) out.kind = TokenizerKind::spm_bpe;
  if (ranked || out.kind == TokenizerKind::byte_bpe) {
    QSF_TRY(read_bpe(gguf, out));
  } else if (out.kind == TokenizerKind::spm_bpe) {
    out.add_bos = true;
    out.add_space_prefix = true;
  } else if (out.kind == TokenizerKind::wordpiece) {
    out.add_bos = out.add_eos = out.add_space_prefix = true;
    for (const NormalizerOp op : {NormalizerOp::clean, NormalizerOp::space_ideographs, NormalizerOp::nfd,
                                  NormalizerOp::strip_accents, NormalizerOp::lowercase}) {
      out.normalizer.push_back({op, {}, {}});
    }
  } else {
    out.add_eos = out.add_space_prefix = true;
    if (const auto map = gguf.values.find(token_key(kCharMap)); map != gguf.values.end()) {
      const GgufValue& value = map->second;
      const bool bytes = value.type == GgufType::array && value.bytes.size() == value.count;
      if (!bytes) return make_error(ErrorCode::bad_tokenizer, "GGUF: the precompiled_charsmap is no list of bytes");
      std::string text(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
      if (!text.empty()) out.normalizer.push_back({NormalizerOp::char_map, {}, std::move(text)});
    }
  }
  Keys keys(gguf, std::string(kTokenizer));
  // Gemma 4's first files deny the begin token that the model expects; llama.cpp adds it in spite of the key.
  out.add_bos = *model == "gemma4" || keys.flag(kAddBos, out.add_bos);
  out.add_eos = keys.flag(kAddEos, out.add_eos);
  out.add_space_prefix = keys.flag(kAddSpace, out.add_space_prefix);
  out.trim_spaces = out.kind == TokenizerKind::unigram && keys.flag(kTrimSpaces, true);
  const std::uint32_t unknown = keys.token(kUnknown);
  const std::uint32_t cls = keys.token(kCls), sep = keys.token(kSep);
  QSF_TRY(keys.status());
  if (cls != kNoToken) out.bos = cls;
  if (sep != kNoToken) out.eos = sep;
  if (out.kind == TokenizerKind::byte_bpe) out.add_space_prefix = false;

  const std::optional<std::vector<double>> scores = gguf.numbers(token_key(kScores));
  const std::optional<std::vector<double>> types = gguf.numbers(token_key(kTokenTypes));
  const bool needs_scores = !ranked && (out.kind == TokenizerKind::spm_bpe || out.kind == TokenizerKind::unigram);
  if ((needs_scores && !scores) || (scores && scores->size() != texts->size()) ||
      (types && types->size() != texts->size())) {
    return make_error(ErrorCode::bad_tokenizer, "GGUF: {} tokens, but {} scores and {} token types", texts->size(),
                      scores ? scores->size() : 0, types ? types->size() : 0);
  }
  out.tokens.resize(texts->size());
  for (std::size_t i = 0; i < texts->size(); ++i) {
    TokenizerSource::Token& token = out.tokens[i];
    QSF_TRY(check_token_text(i, (*texts)[i]));
    token.text = (*texts)[i];
    if (needs_scores) token.score = static_cast<float>((*scores)[i]);
    const double type = types ? (*types)[i] : 1;
    if (!(type >= 1 && type <= 6) || !std::isfinite(token.score)) {
      return make_error(ErrorCode::bad_tokenizer, "GGUF: token {} has the type {} and the score {}", i, type,
                        token.score);
    }
    token.type = static_cast<TokenType>(static_cast<std::uint8_t>(type));
  }
  add_attributes(gguf, out);
  if (ranked) score_by_merges(out);
  if (out.kind == TokenizerKind::wordpiece && unknown < out.tokens.size()) {
    out.tokens[unknown].type = TokenType::unknown;
  }
  return std::optional<TokenizerSource>(std::move(out));
}

}  // namespace qsf::convert
