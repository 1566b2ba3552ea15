// The tokenizer of a model: the choice among its files.
#include <algorithm>
#include <array>

#include "converter/readers/chat_template.h"
#include "converter/readers/gguf/gguf.h"
#include "converter/recipes/settings.h"
#include "converter/tokenizers/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

/// Takes the end token that the tokenizer names as the model's own, among several.
void choose_eos(const Json& config, LoadedModel& model) {
  const std::string text = token_text(config, "eos_token");
  if (text.empty() || !model.tokenizer) return;
  for (const std::uint32_t id : model.config.all_eos) {
    if (id < model.tokenizer->tokens.size() && model.tokenizer->tokens[id].text == text) {
      model.config.eos = id;
      return;
    }
  }
}

/// Adds tokens that SentencePiece files lack because they were added later, from tokenizer_config.json.
Status add_tokens(const Json& config, TokenizerSource& tokenizer) {
  const Json* added = find(config, "added_tokens_decoder");
  if (!added || !added->is_object()) return {};
  const std::uint64_t limit = most_ids(tokenizer.tokens.size() + added->size());
  for (const auto& [key, value] : added->items()) {
    const Result<Json> id = parse_json(key, "tokenizer_config.json: a key of \"added_tokens_decoder\"");
    if (!id) return id.error();
    Fields fields(value, "tokenizer_config.json");
    const std::string content = fields.text("content", "");
    const bool special = fields.flag("special", false);
    const std::uint8_t attributes = attributes_of(fields);
    if (!fields.status()) return fields.status();
    const std::optional<std::uint64_t> number = as_u64(*id);
    if (!number || *number >= limit || content.empty()) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer_config.json: added token \"{:.40}\" makes no sense", key);
    }
    if (*number < tokenizer.tokens.size()) {
      TokenizerSource::Token& known = tokenizer.tokens[*number];
      if (known.text == content) known.attributes = attributes;
      continue;
    }
    QSF_TRY(check_token_text(*number, content));
    tokenizer.tokens.resize(*number + 1, {{}, 0, TokenType::unused});
    tokenizer.tokens[*number] = {content, 0, special ? TokenType::control : TokenType::user_defined, attributes};
  }
  return {};
}

constexpr std::uint64_t kMaxVocabularyBytes = 64 << 20;  // of files that are read whole

Result<std::vector<std::byte>> read_whole(const Input& file) {
  if (file.size <= kMaxVocabularyBytes) return read_head(file, file.size);
  return make_error(ErrorCode::bad_tokenizer, "{:.100} has {} bytes; a tokenizer has {} at most", file.name, file.size,
                    kMaxVocabularyBytes);
}

Result<TokenizerSource> read_model_file(const Input& file) {
  QSF_LET(bytes, read_whole(file));
  return is_tiktoken(bytes) ? read_tiktoken(bytes) : read_sentencepiece(bytes);
}

struct TokenizerFile {
  bool (*recognise)(std::span<const std::byte> head);
  Result<TokenizerSource> (*read)(const Input& file);
};

// A SentencePiece model begins with field 1, length-delimited; a llama2.c file begins with a small int32.
constexpr std::array kTokenizerFiles{
    TokenizerFile{[](std::span<const std::byte> head) { return !head.empty() && head[0] == std::byte{'{'}; },
                  [](const Input& file) -> Result<TokenizerSource> {
                    QSF_LET(json, read_json(file, 0, file.size));
                    return read_tokenizer_json(json, Json(nullptr));
                  }},
    TokenizerFile{is_gguf,
                  [](const Input& file) -> Result<TokenizerSource> {
                    QSF_LET(gguf, read_gguf(file));
                    QSF_LET(tokenizer, read_gguf_tokenizer(gguf));
                    if (!tokenizer) {
                      return make_error(ErrorCode::bad_tokenizer, "the GGUF file holds no tokenizer");
                    }
                    return std::move(*tokenizer);
                  }},
    TokenizerFile{[](std::span<const std::byte> head) {
                    return head.size() > 4 && head[0] == std::byte{'\n'} &&
                           (head[2] != std::byte{0} || head[3] != std::byte{0});
                  },
                  read_model_file},
    TokenizerFile{is_tiktoken, read_model_file},
    TokenizerFile{[](std::span<const std::byte>) { return true; },
                  [](const Input& file) -> Result<TokenizerSource> {
                    QSF_LET(bytes, read_whole(file));
                    return read_llama2c_tokenizer(bytes);
                  }},
};

}  // namespace

std::string token_text(const Json& config, std::string_view key) {
  const Json* token = find(config, key);
  const Json* content = token && token->is_object() ? find(*token, "content") : token;
  const std::string* text = content ? as_text(*content) : nullptr;
  return text ? *text : std::string();
}

Status fit_tokenizer(LoadedModel& model) {
  if (!model.tokenizer) return {};
  // A token that the tokenizer puts before texts counts: some models' config.json names another one.
  if (model.config.bos == kNoToken || model.tokenizer->add_bos) {
    model.config.bos = model.tokenizer->bos.value_or(model.config.bos);
  }
  if (model.config.eos == kNoToken) model.config.eos = model.tokenizer->eos.value_or(kNoToken);
  ModelKind kind;
  apply_settings(model.layers.model, kind);
  // The token that ends an embedded text may differ from the one that ends a generated text.
  if (kind.headless != 0 && model.tokenizer->add_eos)
    model.config.eos = model.tokenizer->eos.value_or(model.config.eos);
  std::vector<TokenizerSource::Token>& tokens = model.tokenizer->tokens;
  if (tokens.size() > model.config.vocab_size) {
    return make_error(ErrorCode::bad_input, "the tokenizer has {} tokens, but the model's vocabulary only {}",
                      tokens.size(), model.config.vocab_size);
  }
  if (model.config.vocab_size <= kMaxVocab) {
    tokens.resize(model.config.vocab_size, {{}, 0, TokenType::unused});
  }
  if (model.tokenizer->kind == TokenizerKind::byte_bpe && model.tokenizer->pattern == kDefaultPattern) {
    model.warnings.push_back(
        "the GGUF does not name its pre-tokenizer (tokenizer.ggml.pre): texts are cut as llama.cpp cuts them then, "
        "perhaps not as the model learned them");
  }
  return {};
}

Status check_token_text(std::uint64_t id, std::string_view text) {
  if (text.size() <= kMaxTokenText) return {};
  return make_error(ErrorCode::unsupported, "tokenizer: token {} is written with {} bytes; {} are possible", id,
                    text.size(), kMaxTokenText);
}

bool is_byte_token(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && hex(text[3]) && hex(text[4]) && text[5] == '>';
}

Status read_tokenizer_of_folder(const InputFolder& folder, const Json& config, LoadedModel& model) {
  QSF_LET(json, read_json(folder, "tokenizer.json"));
  QSF_LET(model_file, folder.find("tokenizer.model"));
  if (!json.is_null()) {
    Result<TokenizerSource> read = read_tokenizer_json(json, config);
    if (read) {
      model.tokenizer = std::move(*read);
    } else if (read.error().code != ErrorCode::unsupported || !model_file) {
      return read.error();
    }
  }
  if (!model.tokenizer && model_file) {
    QSF_LET(read, read_model_file(*model_file));
    Fields fields(config, "tokenizer_config.json");
    read.add_bos = fields.flag("add_bos_token", true);
    read.add_space_prefix = fields.flag("add_prefix_space", read.add_space_prefix);
    if (!fields.status()) return fields.status();
    QSF_TRY(add_tokens(config, read));
    model.tokenizer = std::move(read);
  }
  if (!model.tokenizer) {
    model.warnings.push_back("there is no tokenizer.json or tokenizer.model: the file will only take token ids");
  }
  choose_eos(config, model);
  return fit_tokenizer(model);
}

Status read_tokenizer(const Input& file, LoadedModel& model) {
  QSF_LET(head, read_head(file, kHeadBytes));
  for (const TokenizerFile& type : kTokenizerFiles) {
    if (!type.recognise(head)) continue;
    QSF_LET(read, type.read(file));
    model.tokenizer = std::move(read);
    break;
  }
  QSF_TRY(fit_tokenizer(model));
  keep_template_tokens(model);
  return {};
}

}  // namespace qsf::convert
