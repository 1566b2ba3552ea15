#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kFile = "tokenizer.json";

Error unsupported(const char* what, std::string_view name) {
  return make_error(ErrorCode::unsupported,
                    "tokenizer.json: the {} \"{:.60}\" is not supported; \"--tokenizer none\" "
                    "converts without a tokenizer",
                    what, name);
}
Error damaged(const char* what) { return make_error(ErrorCode::bad_tokenizer, "tokenizer.json: {}", what); }

constexpr std::array<std::pair<const char*, TokenAttribute>, 4> kAttributeNames{{
    {"lstrip", TokenAttribute::lstrip},
    {"rstrip", TokenAttribute::rstrip},
    {"single_word", TokenAttribute::single_word},
    {"normalized", TokenAttribute::normalized},
}};

std::string_view type_of(const Json& json) {
  const Json* type = find(json, "type");
  const std::string* text = type ? as_text(*type) : nullptr;
  return text ? std::string_view(*text) : std::string_view("?");
}

/// Returns the steps of a Sequence in order, or the single step. No known file has Sequences within Sequences.
Result<std::vector<const Json*>> steps_of(const Json* json, std::string_view list) {
  std::vector<const Json*> steps;
  if (!json) return steps;
  if (type_of(*json) != "Sequence") {
    steps.push_back(json);
    return steps;
  }
  const Json* inner = find(*json, list);
  if (!inner || !inner->is_array()) return damaged("a Sequence without its list");
  for (const Json& step : *inner) steps.push_back(&step);
  return steps;
}

/// Returns an expression with CR and LF as \r and \n. Some files have the characters themselves.
std::string escaped(std::string_view expression) {
  std::string out;
  for (const char c : expression) {
    if (c == '\r') out += "\\r";
    if (c == '\n') out += "\\n";
    if (c != '\r' && c != '\n') out += c;
  }
  return out;
}

/// Returns the regular expressions of the pre-tokenizer, joined as in TokenizerSource::pattern.
Result<std::string> pattern_of(const Json& json) {
  const Result<std::vector<const Json*>> steps = steps_of(find(json, "pre_tokenizer"), "pretokenizers");
  if (!steps) return steps.error();
  std::string pattern;
  bool byte_level = false;
  for (const Json* step : *steps) {
    const std::string_view type = type_of(*step);
    Fields fields(*step, kFile);
    std::string part;
    if (type == "ByteLevel") {
      byte_level = true;
      if (fields.flag("add_prefix_space", false)) return unsupported("ByteLevel option", "add_prefix_space");
      if (fields.flag("use_regex", true)) part = kByteLevelPattern;
    } else if (type == "Digits") {
      // After ByteLevel it sees bytes as characters. No token of such a vocabulary crosses its cuts, so it adds
      // nothing.
      if (fields.flag("individual_digits", false)) {
        part = kDigitsPattern;
      } else if (!byte_level) {
        return unsupported("Digits option", "individual_digits: false");
      }
    } else if (type == "Punctuation") {
      const std::string behavior = fields.text("behavior", "Isolated");
      if (behavior != "Contiguous") return unsupported("Punctuation behaviour", behavior);
      part = pattern::kPunctuation;
    } else if (type == "Split") {
      const Json* expression = find(*step, "pattern");
      const Json* regex = expression ? find(*expression, "Regex") : nullptr;
      if (!regex || !as_text(*regex)) return unsupported("pattern of a Split without", "Regex");
      const std::string behavior = fields.text("behavior", "Isolated");
      if (behavior != "Isolated" || fields.flag("invert", false)) return unsupported("Split behaviour", behavior);
      part = escaped(*as_text(*regex));
    } else {
      return unsupported("pre-tokenizer", type);
    }
    if (!fields.status()) return fields.status().error();
    if (part.empty()) continue;
    if (!pattern.empty()) pattern += '\n';
    pattern += part;
  }
  if (!byte_level) return unsupported("pre-tokenizer without", "ByteLevel");
  return pattern;
}

/// Normalizers that are one operation without texts.
struct PlainNormalizer {
  std::string_view type;
  NormalizerOp op;
};
constexpr std::array kPlainNormalizers{
    PlainNormalizer{"NFC", NormalizerOp::nfc},
    PlainNormalizer{"NFD", NormalizerOp::nfd},
    PlainNormalizer{"NFKC", NormalizerOp::nfkc},
    PlainNormalizer{"NFKD", NormalizerOp::nfkd},
    PlainNormalizer{"Lowercase", NormalizerOp::lowercase},
    PlainNormalizer{"StripAccents", NormalizerOp::strip_marks},
};

/// Reads a Replace of a text, or of runs of spaces by one, which some files write as U+2581.
Status read_replace(const Json& step, const std::string& content, TokenizerSource& out) {
  const Json* expression = find(step, "pattern");
  const Json* regex = expression ? find(*expression, "Regex") : nullptr;
  const bool words = out.kind == TokenizerKind::unigram || out.kind == TokenizerKind::spm_bpe;
  if (regex && as_text(*regex) && *as_text(*regex) == " {2,}" && (content == " " || (words && content == kSpaceMark))) {
    out.normalizer.push_back({NormalizerOp::join_spaces, {}, {}});
    return {};
  }
  const Json* text = expression ? find(*expression, "String") : nullptr;
  if (!text || !as_text(*text)) return unsupported("Replace without", "String");
  out.normalizer.push_back({NormalizerOp::replace, *as_text(*text), content});
  return {};
}

/// Reads the steps. A Strip, which needs read_words, sets trim_spaces.
Status read_normalizer(const Json& json, TokenizerSource& out) {
  QSF_LET(steps, steps_of(find(json, "normalizer"), "normalizers"));
  const auto add = [&](NormalizerOp op, std::string from = {}, std::string to = {}) {
    out.normalizer.push_back({op, std::move(from), std::move(to)});
  };
  for (const Json* step : steps) {
    if (step->is_null()) continue;
    const std::string_view type = type_of(*step);
    Fields fields(*step, kFile);
    const auto plain =
        std::find_if(kPlainNormalizers.begin(), kPlainNormalizers.end(), [&](const auto& p) { return p.type == type; });
    if (plain != kPlainNormalizers.end()) {
      add(plain->op);
    } else if (type == "Prepend") {
      add(NormalizerOp::prepend, {}, fields.text("prepend", ""));
    } else if (type == "Replace") {
      QSF_TRY(read_replace(*step, fields.text("content", ""), out));
    } else if (type == "Precompiled") {
      std::string map;
      if (!from_base64(fields.text("precompiled_charsmap", ""), map)) return damaged("a Precompiled without its map");
      add(NormalizerOp::cluster_map, {}, std::move(map));
    } else if (type == "Strip" && fields.flag("strip_right", false)) {
      out.trim_spaces = true;
    } else if (type == "BertNormalizer") {
      const bool lowers = fields.flag("lowercase", true);
      const Json* strip = find(*step, "strip_accents");
      const bool strips = strip && !strip->is_null() ? fields.flag("strip_accents", lowers) : lowers;
      if (fields.flag("clean_text", true)) add(NormalizerOp::clean);
      if (fields.flag("handle_chinese_chars", true)) add(NormalizerOp::space_ideographs);
      if (strips) {
        add(NormalizerOp::nfd);
        add(NormalizerOp::strip_accents);
      }
      if (lowers) add(NormalizerOp::lowercase);
    } else {
      return unsupported("normalizer", type);
    }
    QSF_TRY(fields.status());
  }
  return {};
}

/// Reads the special tokens that a template adds before and after a text.
Status read_template(const Json& json, TokenizerSource& out) {
  QSF_LET(steps, steps_of(find(json, "post_processor"), "processors"));
  for (const Json* step : steps) {
    if (const std::string_view type = type_of(*step); type == "BertProcessing" || type == "RobertaProcessing") {
      out.add_bos = out.add_eos = true;
      for (const auto& [name, id] : {std::pair("cls", &out.bos), std::pair("sep", &out.eos)}) {
        const Json* pair = find(*step, name);
        const auto number = pair && pair->is_array() && pair->size() == 2 ? as_u64((*pair)[1]) : std::nullopt;
        if (!number || *number >= kMaxVocab) return damaged("a post-processor without its tokens");
        *id = static_cast<std::uint32_t>(*number);
      }
    }
    if (type_of(*step) != "TemplateProcessing") continue;
    const Json* single = find(*step, "single");
    if (!single || !single->is_array() || single->empty()) return damaged("a template without \"single\"");
    const Json* tokens = find(*step, "special_tokens");
    const auto read = [&](const Json& part, std::optional<std::uint32_t>& id) {
      const Json* special = find(part, "SpecialToken");
      if (!special) return false;
      const Json* name = find(*special, "id");
      const Json* token = tokens && name && as_text(*name) ? find(*tokens, *as_text(*name)) : nullptr;
      const Json* ids = token ? find(*token, "ids") : nullptr;
      const auto number = ids && ids->is_array() && ids->size() == 1 ? as_u64((*ids)[0]) : std::nullopt;
      if (number && *number < kMaxVocab) id = static_cast<std::uint32_t>(*number);
      return true;
    };
    out.add_bos = read((*single)[0], out.bos);
    out.add_eos = single->size() > 1 && read((*single)[single->size() - 1], out.eos);
  }
  return {};
}

Status set_token(TokenizerSource& out, std::uint64_t limit, const Json* id, const std::string& text, TokenType type,
                 std::uint8_t attributes = 0) {
  const std::optional<std::uint64_t> number = id ? as_u64(*id) : std::nullopt;
  if (!number || *number >= limit) return damaged("a token's id is missing, no whole number or too large");
  QSF_TRY(check_token_text(*number, text));
  if (*number >= out.tokens.size()) out.tokens.resize(*number + 1, {{}, 0, TokenType::unused});
  out.tokens[*number] = {text, 0, type, attributes};
  return {};
}

Status read_merges(const Json& list, TokenizerSource& out) {
  out.merges.reserve(list.size());
  for (const Json& merge : list) {
    const std::string* line = as_text(merge);
    if (line) {
      QSF_TRY(check_token_text(out.merges.size(), *line));
      const std::size_t space = line->find(' ');
      if (space == 0 || space == std::string::npos || space + 1 == line->size() ||
          line->find(' ', space + 1) != std::string::npos) {
        return damaged("a merge is not two tokens with a space between");
      }
      out.merges.emplace_back(line->substr(0, space), line->substr(space + 1));
    } else if (merge.is_array() && merge.size() == 2 && as_text(merge[0]) && as_text(merge[1])) {
      for (const Json& side : merge) QSF_TRY(check_token_text(out.merges.size(), *as_text(side)));
      out.merges.emplace_back(*as_text(merge[0]), *as_text(merge[1]));
    } else {
      return damaged("a merge is neither a text nor a pair of texts");
    }
  }
  return {};
}

/// Reads the pre-tokenizer of vocabularies whose words start with U+2581: Metaspace, WhitespaceSplit, or Gemma's, which
/// finds no space.
Status read_words(const Json& json, TokenizerSource& out) {
  const bool strips = std::exchange(out.trim_spaces, false);
  QSF_LET(steps, steps_of(find(json, "pre_tokenizer"), "pretokenizers"));
  for (const Json* step : steps) {
    if (step->is_null()) continue;
    const std::string_view type = type_of(*step);
    Fields fields(*step, kFile);
    if (type == "Metaspace") {
      if (fields.text("replacement", std::string(kSpaceMark)) != kSpaceMark)
        return unsupported("Metaspace option", "replacement");
      const bool adds = fields.flag("add_prefix_space", true);
      const std::string scheme = fields.text("prepend_scheme", adds ? "always" : "never");
      out.add_space_prefix = scheme != "never";
      out.prefix_unless_space = out.add_space_prefix;
      out.prefix_once = scheme == "first";
    } else if (type == "WhitespaceSplit") {
      out.trim_spaces = true;
    } else if (type != "Split" || fields.text("behavior", "") != "MergedWithPrevious") {
      return unsupported("pre-tokenizer", type);
    }
    QSF_TRY(fields.status());
  }
  // The engine itself treats U+2581 as a space, and a prefix of all texts is a flag.
  auto& normalizer = out.normalizer;
  std::erase_if(normalizer, [](const NormalizerStep& step) {
    return step.op == NormalizerOp::replace && step.from == " " && step.to == kSpaceMark;
  });
  const std::size_t before = normalizer.size();
  std::erase_if(normalizer,
                [](const NormalizerStep& step) { return step.op == NormalizerOp::prepend && step.to == kSpaceMark; });
  out.add_space_prefix = out.add_space_prefix || normalizer.size() != before;
  out.prefix_once = out.prefix_once && normalizer.size() == before;
  // Joined spaces without those at the end are trimmed ones, if the prefix stands for those at the beginning.
  const auto joins = std::ranges::find(normalizer, NormalizerOp::join_spaces, &NormalizerStep::op);
  if (strips && (joins == normalizer.end() || !out.add_space_prefix || out.prefix_once)) {
    return unsupported("normalizer", "Strip");
  }
  out.trim_spaces = out.trim_spaces || strips;
  if (out.trim_spaces && joins != normalizer.end()) normalizer.erase(joins);
  return {};
}

Status read_vocabulary(const Json& json, const Json& model, TokenizerSource& out) {
  const Json* vocab = find(model, "vocab");
  const bool scored = out.kind == TokenizerKind::unigram;
  if (!vocab || !(scored ? vocab->is_array() : vocab->is_object())) {
    return damaged(scored ? "\"vocab\" is missing or no list" : "\"vocab\" is missing or no object");
  }
  const Json* added = find(json, "added_tokens");
  const std::uint64_t limit = most_ids(vocab->size() + (added ? added->size() : 0));
  if (scored) {
    for (const Json& piece : *vocab) {
      if (!piece.is_array() || piece.size() != 2 || !as_text(piece[0]) || !piece[1].is_number() ||
          !std::isfinite(piece[1].get<float>())) {
        return damaged("a piece is not a text with a score");
      }
      const std::uint64_t id = out.tokens.size();
      const Json number(id);
      QSF_TRY(set_token(out, limit, &number, *as_text(piece[0]), TokenType::normal));
      out.tokens[id].score = piece[1].get<float>();
    }
  }
  const Json none = Json::object();
  for (const auto& [text, id] : (scored ? none : *vocab).items()) {
    const std::optional<std::uint64_t> number = as_u64(id);
    if (number && *number < out.tokens.size() && out.tokens[*number].type != TokenType::unused) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer.json: two tokens have the id {}", *number);
    }
    QSF_TRY(set_token(out, limit, &id, text, TokenType::normal));
  }
  if (!added) return {};
  if (!added->is_array()) return damaged("\"added_tokens\" is no list");
  for (const Json& token : *added) {
    Fields entry(token, kFile);
    const std::string content = entry.text("content", "");
    const TokenType type = entry.flag("special", false) ? TokenType::control : TokenType::user_defined;
    const std::uint8_t attributes = attributes_of(entry);
    if (!entry.status() || content.empty()) return damaged("an added token lacks its content");
    QSF_TRY(set_token(out, limit, find(token, "id"), content, type, attributes));
  }
  return {};
}

/// Rewrites "##ing" as "ing", and adds U+2581 before tokens that begin a word, such as "the".
Status read_wordpiece(Fields& fields, TokenizerSource& out) {
  const std::string prefix = fields.text("continuing_subword_prefix", "##");
  const Json* most = fields.get("max_input_chars_per_word");
  const auto number = most ? as_u64(*most) : std::optional<std::uint64_t>(100);
  if (prefix.empty() || !number || *number == 0 || *number > 1000) {
    return damaged("WordPiece without a prefix or a length of words");
  }
  out.max_word = static_cast<std::uint32_t>(*number);
  out.add_space_prefix = true;
  for (TokenizerSource::Token& token : out.tokens) {
    if (token.type != TokenType::normal) continue;
    token.text =
        token.text.starts_with(prefix) ? token.text.substr(prefix.size()) : std::string(kSpaceMark) + token.text;
  }
  return {};
}

}  // namespace

std::uint8_t attributes_of(Fields& token) {
  std::uint8_t bits = 0;
  for (const auto& [name, attribute] : kAttributeNames) {
    if (token.flag(name, false)) bits |= static_cast<std::uint8_t>(attribute);
  }
  return bits;
}

void score_by_merges(TokenizerSource& out) {
  std::map<std::string, float> scores;  // not a hash table: a hostile file could make all keys collide
  for (const auto& [left, right] : out.merges) scores.emplace(left + right, -static_cast<float>(scores.size()));
  const float worst = -static_cast<float>(scores.size());
  for (TokenizerSource::Token& token : out.tokens) {
    const auto found = scores.find(token.text);
    token.score = found == scores.end() ? worst : found->second;
  }
  out.merges.clear();
}

Result<TokenizerSource> read_tokenizer_json(const Json& json, const Json& config) {
  const Json* model = find(json, "model");
  if (!model || !model->is_object()) return damaged("\"model\" is missing or no object");
  Fields fields(*model, kFile);
  TokenizerSource out;
  const std::string_view type = type_of(*model);
  const bool falls_back = fields.flag("byte_fallback", false);
  if (type == "BPE") {
    out.kind = falls_back ? TokenizerKind::spm_bpe : TokenizerKind::byte_bpe;
  } else if (type == "Unigram") {
    out.kind = TokenizerKind::unigram;
  } else if (type == "WordPiece") {
    out.kind = TokenizerKind::wordpiece;
  } else {
    return unsupported("model", type);
  }
  QSF_TRY(read_normalizer(json, out));
  const bool spaces = out.kind == TokenizerKind::unigram || out.kind == TokenizerKind::spm_bpe;
  if (out.trim_spaces && !spaces) return unsupported("normalizer", "Strip");
  if (out.kind == TokenizerKind::byte_bpe) {
    QSF_LET(pattern, pattern_of(json));
    out.pattern = std::move(pattern);
  } else if (out.kind != TokenizerKind::wordpiece) {
    QSF_TRY(read_words(json, out));
  } else if (const Json* cuts = find(json, "pre_tokenizer"); !cuts || type_of(*cuts) != "BertPreTokenizer") {
    return unsupported("pre-tokenizer", cuts ? type_of(*cuts) : "?");
  }
  if (type == "BPE") {
    out.ignore_merges = fields.flag("ignore_merges", false);
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!fields.text(affix, "").empty()) return unsupported("option", affix);
    }
  }
  QSF_TRY(read_template(json, out));
  Fields settings(config, "tokenizer_config.json");
  out.add_bos = settings.flag("add_bos_token", out.add_bos);
  out.add_eos = settings.flag("add_eos_token", out.add_eos);
  QSF_TRY(settings.status());
  QSF_TRY(fields.status());
  QSF_TRY(read_vocabulary(json, *model, out));
  if (out.add_bos && !out.bos) {
    const auto begin = std::ranges::find(out.tokens, token_text(config, "bos_token"), &TokenizerSource::Token::text);
    if (begin != out.tokens.end() && !begin->text.empty()) {
      out.bos = static_cast<std::uint32_t>(begin - out.tokens.begin());
    }
  }
  if (type == "BPE") {
    const Json* merges = find(*model, "merges");
    if (!merges || !merges->is_array()) return damaged("\"merges\" is missing or no list");
    QSF_TRY(read_merges(*merges, out));
    if (falls_back) score_by_merges(out);
  }
  if (out.kind == TokenizerKind::wordpiece) QSF_TRY(read_wordpiece(fields, out));
  if (out.kind == TokenizerKind::byte_bpe) return out;
  const Json* unknown = find(*model, type == "Unigram" ? "unk_id" : "unk_token");
  constexpr std::uint64_t kNoId = ~std::uint64_t{0};
  const std::uint64_t unknown_id = unknown ? as_u64(*unknown).value_or(kNoId) : kNoId;
  const std::string* unknown_text = unknown ? as_text(*unknown) : nullptr;
  for (std::size_t id = 0; id < out.tokens.size(); ++id) {
    TokenizerSource::Token& token = out.tokens[id];
    std::string_view text = token.text;
    bool plain = unknown_text && text == *unknown_text;
    if (unknown_text && !plain && text.starts_with(kSpaceMark)) plain = text.substr(kSpaceMark.size()) == *unknown_text;
    if (unknown_id == id || plain) {
      token.type = TokenType::unknown;
    } else if (falls_back && token.type == TokenType::normal && is_byte_token(token.text)) {
      token.type = TokenType::byte;
    }
  }
  return out;
}

}  // namespace qsf::convert
