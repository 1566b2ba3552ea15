#include <algorithm>

#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

constexpr std::string_view kFile = "tokenizer.json";

Error unsupported(const char* what, std::string_view name) {
  return make_error(ErrorCode::unsupported,
                    "tokenizer.json: the {} \"{:.60}\" is not supported (only byte-level BPE is); \"--tokenizer none\" "
                    "converts without a tokenizer",
                    what, name);
}
Error damaged(const char* what) { return make_error(ErrorCode::bad_tokenizer, "tokenizer.json: {}", what); }

std::string_view type_of(const Json& json) {
  const Json* type = find(json, "type");
  const std::string* text = type ? as_text(*type) : nullptr;
  return text ? std::string_view(*text) : std::string_view("?");
}

/// A step and the steps of a Sequence, in order. Sequences in sequences are not written by anyone.
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

/// CR and LF of an expression as \r and \n; some files have them as they are.
std::string escaped(std::string_view expression) {
  std::string out;
  for (const char c : expression) {
    if (c == '\r') out += "\\r";
    if (c == '\n') out += "\\n";
    if (c != '\r' && c != '\n') out += c;
  }
  return out;
}

/// The regular expressions of the pre-tokenizer, joined as TokenizerSource::pattern says.
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
      // Behind ByteLevel it sees bytes as characters. No token of such a vocabulary crosses its cuts: it adds nothing.
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

Status check_normalizer(const Json& json, std::vector<std::string>& warnings) {
  const Result<std::vector<const Json*>> steps = steps_of(find(json, "normalizer"), "normalizers");
  if (!steps) return steps.error();
  for (const Json* step : *steps) {
    if (type_of(*step) != "NFC") return unsupported("normalizer", type_of(*step));
    warnings.push_back("the tokenizer composes characters (Unicode NFC) first; QSF takes text as it is");
  }
  return {};
}

/// Whether a template puts a special token in front of a text.
Result<bool> template_adds_bos(const Json& json) {
  const Result<std::vector<const Json*>> steps = steps_of(find(json, "post_processor"), "processors");
  if (!steps) return steps.error();
  for (const Json* step : *steps) {
    if (type_of(*step) != "TemplateProcessing") continue;
    const Json* single = find(*step, "single");
    if (!single || !single->is_array() || single->empty()) return damaged("a template without \"single\"");
    return find((*single)[0], "SpecialToken") != nullptr;
  }
  return false;
}

Status set_token(TokenizerSource& out, std::uint64_t limit, const Json* id, const std::string& text, TokenType type) {
  const std::optional<std::uint64_t> number = id ? as_u64(*id) : std::nullopt;
  if (!number || *number >= limit) return damaged("a token's id is missing, no whole number or too large");
  QSF_TRY(check_token_text(*number, text));
  if (*number >= out.tokens.size()) out.tokens.resize(*number + 1, {{}, 0, TokenType::unused});
  out.tokens[*number] = {text, 0, type};
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

}  // namespace

Result<TokenizerSource> read_tokenizer_json(const Json& json, const Json& config, std::vector<std::string>& warnings) {
  const Json* model = find(json, "model");
  if (!model || !model->is_object()) return damaged("\"model\" is missing or no object");
  if (type_of(*model) != "BPE") return unsupported("model", type_of(*model));
  TokenizerSource out;
  out.kind = TokenizerKind::byte_bpe;
  Result<std::string> pattern = pattern_of(json);
  if (!pattern) return pattern.error();
  out.pattern = std::move(*pattern);
  QSF_TRY(check_normalizer(json, warnings));

  Fields fields(*model, kFile);
  out.ignore_merges = fields.flag("ignore_merges", false);
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.text(affix, "").empty()) return unsupported("option", affix);
  }
  const Result<bool> bos = template_adds_bos(json);
  if (!bos) return bos.error();
  Fields settings(config, "tokenizer_config.json");
  out.add_bos = settings.flag("add_bos_token", *bos);
  if (!fields.status()) return fields.status().error();
  if (!settings.status()) return settings.status().error();

  const Json* vocab = find(*model, "vocab");
  const Json* merges = find(*model, "merges");
  if (!vocab || !vocab->is_object()) return damaged("\"vocab\" is missing or no object");
  if (!merges || !merges->is_array()) return damaged("\"merges\" is missing or no list");
  const Json* added = find(json, "added_tokens");
  const std::uint64_t limit = most_ids(vocab->size() + (added ? added->size() : 0));
  for (const auto& [text, id] : vocab->items()) {
    const std::optional<std::uint64_t> number = as_u64(id);
    if (number && *number < out.tokens.size() && out.tokens[*number].type != TokenType::unused) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer.json: two tokens have the id {}", *number);
    }
    QSF_TRY(set_token(out, limit, &id, text, TokenType::normal));
  }
  if (added) {
    if (!added->is_array()) return damaged("\"added_tokens\" is no list");
    for (const Json& token : *added) {
      Fields entry(token, kFile);
      const std::string content = entry.text("content", "");
      const TokenType type = entry.flag("special", false) ? TokenType::control : TokenType::user_defined;
      if (!entry.status() || content.empty()) return damaged("an added token lacks its content");
      QSF_TRY(set_token(out, limit, find(token, "id"), content, type));
    }
  }
  QSF_TRY(read_merges(*merges, out));
  return out;
}

}  // namespace qsf::convert
