// Which tokenizer a model comes with.
#include <algorithm>
#include <filesystem>

#include "converter/gguf.h"
#include "converter/tokenizers.h"
#include "qsf/base/try.h"

namespace qsf::convert {
namespace {

namespace fs = std::filesystem;

/// A token's text in tokenizer_config.json: a text, or an object with "content".
std::string token_text(const Json& config, std::string_view key) {
  const Json* token = find(config, key);
  const Json* content = token && token->is_object() ? find(*token, "content") : token;
  const std::string* text = content ? as_text(*content) : nullptr;
  return text ? *text : std::string();
}

/// Of several ids that end a text, the one that the tokenizer names is the model's own.
void choose_eos(const Json& config, ModelSource& model) {
  const std::string text = token_text(config, "eos_token");
  if (text.empty() || !model.tokenizer) return;
  for (const std::uint32_t id : model.config.all_eos) {
    if (id < model.tokenizer->tokens.size() && model.tokenizer->tokens[id].text == text) {
      model.config.eos = id;
      return;
    }
  }
}

/// SentencePiece files lack what was added later; tokenizer_config.json has it.
Status add_tokens(const Json& config, TokenizerSource& tokenizer) {
  const Json* added = find(config, "added_tokens_decoder");
  if (!added || !added->is_object()) return {};
  for (const auto& [key, value] : added->items()) {
    const Result<Json> id = parse_json(key, "tokenizer_config.json: a key of \"added_tokens_decoder\"");
    if (!id) return id.error();
    Fields fields(value, "tokenizer_config.json");
    const std::string content = fields.text("content", "");
    const bool special = fields.flag("special", false);
    if (!fields.status()) return fields.status();
    const std::optional<std::uint64_t> number = as_u64(*id);
    if (!number || *number >= kMaxVocab || content.empty()) {
      return make_error(ErrorCode::bad_tokenizer, "tokenizer_config.json: added token \"{:.40}\" makes no sense", key);
    }
    if (*number < tokenizer.tokens.size()) continue;
    tokenizer.tokens.resize(*number + 1, {{}, 0, TokenType::unused});
    tokenizer.tokens[*number] = {content, 0, special ? TokenType::control : TokenType::user_defined};
  }
  return {};
}

struct TokenizerFile {
  std::string_view name;
  bool (*recognise)(std::span<const std::byte> bytes);
  Result<TokenizerSource> (*read)(std::span<const std::byte> bytes, std::vector<std::string>& warnings);
};

bool first_is(std::span<const std::byte> bytes, char c) { return !bytes.empty() && static_cast<char>(bytes[0]) == c; }
std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::array kTokenizerFiles{
    TokenizerFile{"tokenizer.json", [](std::span<const std::byte> b) { return first_is(b, '{'); },
                  [](std::span<const std::byte> b, std::vector<std::string>& warnings) -> Result<TokenizerSource> {
                    const Result<Json> json = parse_json(text_of(b), "the tokenizer");
                    if (!json) return json.error();
                    return read_tokenizer_json(*json, Json(nullptr), warnings);
                  }},
    TokenizerFile{"GGUF", [](std::span<const std::byte> b) { return is_gguf(b); },
                  [](std::span<const std::byte> b, std::vector<std::string>&) -> Result<TokenizerSource> {
                    const Result<Gguf> gguf = read_gguf(b);
                    if (!gguf) return gguf.error();
                    Result<std::optional<TokenizerSource>> tokenizer = read_gguf_tokenizer(*gguf);
                    if (!tokenizer) return tokenizer.error();
                    if (!*tokenizer) return make_error(ErrorCode::bad_tokenizer, "the GGUF file holds no tokenizer");
                    return std::move(**tokenizer);
                  }},
    // A SentencePiece model begins with field 1, length-delimited; a llama2.c file with a small int32.
    TokenizerFile{"tokenizer.model",
                  [](std::span<const std::byte> b) {
                    return first_is(b, '\x0a') && b.size() > 4 && (b[2] != std::byte{0} || b[3] != std::byte{0});
                  },
                  [](std::span<const std::byte> b, std::vector<std::string>&) { return read_sentencepiece(b); }},
    TokenizerFile{"llama2.c tokenizer.bin", [](std::span<const std::byte>) { return true; },
                  [](std::span<const std::byte> b, std::vector<std::string>&) { return read_llama2c_tokenizer(b); }},
};

}  // namespace

Status fit_tokenizer(ModelSource& model) {
  if (!model.tokenizer) return {};
  std::vector<TokenizerSource::Token>& tokens = model.tokenizer->tokens;
  if (tokens.size() > model.config.vocab_size) {
    return make_error(ErrorCode::bad_input, "the tokenizer has {} tokens, but the model's vocabulary only {}",
                      tokens.size(), model.config.vocab_size);
  }
  if (model.config.vocab_size <= kMaxVocab) {
    tokens.resize(model.config.vocab_size, {{}, 0, TokenType::unused});
  }
  return {};
}

bool is_byte_token(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && hex(text[3]) && hex(text[4]) && text[5] == '>';
}

Status read_tokenizer_of_directory(const std::string& path, ModelSource& model) {
  const fs::path directory(path);
  const Result<Json> config = read_json_file(directory / "tokenizer_config.json");
  if (!config) return config.error();
  const Result<Json> json = read_json_file(directory / "tokenizer.json");
  if (!json) return json.error();
  const bool has_model = is_file(directory / "tokenizer.model");
  if (!json->is_null()) {
    Result<TokenizerSource> read = read_tokenizer_json(*json, *config, model.warnings);
    if (read) {
      model.tokenizer = std::move(*read);
    } else if (read.error().code != ErrorCode::unsupported || !has_model) {
      return read.error();
    }
  }
  if (!model.tokenizer && has_model) {
    const Result<MappedFile> file = MappedFile::open((directory / "tokenizer.model").string());
    if (!file) return file.error();
    Result<TokenizerSource> read = read_sentencepiece(file->bytes());
    if (!read) return read.error();
    Fields fields(*config, "tokenizer_config.json");
    read->add_bos = fields.flag("add_bos_token", true);
    read->add_space_prefix = fields.flag("add_prefix_space", read->add_space_prefix);
    if (!fields.status()) return fields.status();
    QSF_TRY(add_tokens(*config, *read));
    model.tokenizer = std::move(*read);
  }
  if (!model.tokenizer) {
    model.warnings.push_back("there is no tokenizer.json or tokenizer.model: the file will only take token ids");
  }
  choose_eos(*config, model);
  return fit_tokenizer(model);
}

Status read_tokenizer_file(const std::string& path, ModelSource& model) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  for (const TokenizerFile& type : kTokenizerFiles) {
    if (!type.recognise(file->bytes())) continue;
    Result<TokenizerSource> read = type.read(file->bytes(), model.warnings);
    if (!read) return read.error();
    model.tokenizer = std::move(*read);
    break;
  }
  return fit_tokenizer(model);
}

}  // namespace qsf::convert
