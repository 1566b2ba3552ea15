#include "converter/readers/chat_template.h"

#include <algorithm>
#include <array>

#include "converter/tokenizers/tokenizers.h"
#include "converter/types/gguf_keys.h"
#include "qsf/base/try.h"
#include "qsf/base/utf8.h"

namespace qsf::convert {
namespace {

constexpr const char* kJinjaFile = "chat_template.jinja";
constexpr std::size_t kMaxNamed = 16;  // templates with a name

/// A variable of a template, and the token id that provides its text if the source gives none.
struct Variable {
  std::string_view name;
  std::uint32_t ModelConfig::* id;
};
constexpr std::array kVariables{
    Variable{"bos_token", &ModelConfig::bos}, Variable{"eos_token", &ModelConfig::eos},
    Variable{"pad_token", &ModelConfig::pad}, Variable{"unk_token", nullptr},
    Variable{"sep_token", nullptr},           Variable{"cls_token", nullptr},
    Variable{"mask_token", nullptr},
};

bool is_text(std::string_view text) {
  return std::ranges::none_of(
      text, [](char c) { return (c >= 0 && c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f; });
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// Stores a template, or warns with the reason. The default template has no name.
void keep(std::string_view name, std::string_view text, LoadedModel& model) {
  const std::string what = name.empty() ? "the chat template" : "the chat template " + std::string(name.substr(0, 64));
  const auto leave_out = [&](const std::string& why) {
    model.warnings.push_back(what + " " + why + ": the file is without it");
  };
  if (text.size() > kMaxMetaText) {
    return leave_out("has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(kMaxMetaText));
  }
  if (!name.empty() && !is_name(name)) return leave_out("has a name that is no word");
  if (!is_text(text)) return leave_out("has control characters");
  if (!utf8::is_valid(text)) return leave_out("is not UTF-8");
  if (model.chat.size() > kMaxNamed) return leave_out("is one too many");
  std::string key(kMetaChatTemplate);
  if (!name.empty()) key += "." + std::string(name);
  const auto same = [&](const auto& kept) { return kept.first == key; };
  if (std::ranges::none_of(model.chat, same)) model.chat.emplace_back(std::move(key), text);
}

/// Stores the special tokens that a template names, as `text_of` or the tokenizer writes them.
template <class TextOf>
void keep_tokens(LoadedModel& model, const TextOf& text_of) {
  const std::vector<std::pair<std::string, std::string>> templates = model.chat;
  for (const Variable& variable : kVariables) {
    const auto uses = [&](const auto& kept) { return kept.second.find(variable.name) != std::string::npos; };
    if (std::ranges::none_of(templates, uses)) continue;
    std::string text = text_of(variable.name);
    const std::uint32_t id = variable.id != nullptr ? model.config.*variable.id : kNoToken;
    if (text.empty() && model.tokenizer && id < model.tokenizer->tokens.size()) {
      text = model.tokenizer->tokens[id].text;
    }
    if (text.empty() || text.size() > kMaxTokenText || !is_text(text) || !utf8::is_valid(text)) continue;
    std::string key = std::string(kMetaChatTokens) + std::string(variable.name);
    const auto same = [&](const auto& kept) { return kept.first == key; };
    if (std::ranges::none_of(model.chat, same)) model.chat.emplace_back(std::move(key), std::move(text));
  }
}

}  // namespace

Status read_chat_template(const InputFolder& folder, const Json& config, LoadedModel& model) {
  QSF_LET(file, folder.find(kJinjaFile));
  if (file && file->size > kMaxMetaText) {
    model.warnings.push_back(std::string(kJinjaFile) + " has " + std::to_string(file->size) + " bytes, more than " +
                             std::to_string(kMaxMetaText) + ": the file is without it");
  } else if (file) {
    QSF_LET(bytes, read_head(*file, file->size));
    keep("", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, model);
  }
  if (const Json* given = find(config, "chat_template")) {
    if (const std::string* text = as_text(*given); text != nullptr && !file) keep("", *text, model);
    for (const Json& one : given->is_array() ? *given : Json::array()) {
      const Json* name = find(one, "name");
      const Json* text = find(one, "template");
      if (!name || !text || !as_text(*name) || !as_text(*text)) continue;
      const bool usual = *as_text(*name) == "default";
      if (!usual || !file) keep(usual ? std::string_view() : *as_text(*name), *as_text(*text), model);
    }
  }
  keep_tokens(model, [&](std::string_view name) { return token_text(config, name); });
  return {};
}

void read_chat_template(const Gguf& gguf, LoadedModel& model) {
  constexpr std::string_view kKey = gguf_key::kChatTemplate;
  for (auto at = gguf.values.lower_bound(kKey); at != gguf.values.end() && at->first.starts_with(kKey); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(kKey.size());
    const auto text = gguf.text(at->first);
    if (text && (rest.empty() || rest.front() == '.')) keep(rest.empty() ? rest : rest.substr(1), *text, model);
  }
  keep_template_tokens(model);
}

void keep_template_tokens(LoadedModel& model) {
  keep_tokens(model, [](std::string_view) { return std::string(); });
}

}  // namespace qsf::convert
