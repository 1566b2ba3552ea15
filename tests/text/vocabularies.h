// Vocabularies for tests: from tokenizer.json, from GPT-2's pair of files, from the tokenizer keys of a GGUF file.
#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qsf/base/bytes.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool exists(const std::string& path) { return std::ifstream(path).good(); }

inline void put_token(TokenizerSource& source, std::uint32_t id, TokenizerSource::Token token) {
  if (source.tokens.size() <= id) source.tokens.resize(id + 1, {"", 0, TokenType::unused});
  source.tokens[id] = std::move(token);
}

inline std::string pattern_of(const nlohmann::json& step) {
  const std::string type = step.at("type");
  if (type == "ByteLevel") return step.value("use_regex", true) ? std::string(kByteLevelPattern) : "";
  if (type == "Digits") return std::string(kDigitsPattern);
  if (type == "Split") return step.at("pattern").at("Regex");
  std::string joined;
  for (const nlohmann::json& each : step.at("pretokenizers")) {
    const std::string pattern = pattern_of(each);
    if (!joined.empty() && !pattern.empty()) joined += '\n';
    joined += pattern;
  }
  return joined;
}

inline std::pair<std::string, std::string> split_merge(const std::string& text) {
  const std::size_t space = text.find(' ', 1);
  return {text.substr(0, space), text.substr(space + 1)};
}

inline TokenizerSource from_tokenizer_json(const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(read_file(path));
  TokenizerSource source;
  source.pattern = pattern_of(json.at("pre_tokenizer"));
  source.ignore_merges = json.at("model").value("ignore_merges", false);
  for (const auto& [text, id] : json.at("model").at("vocab").items()) put_token(source, id, {text});
  for (const nlohmann::json& merge : json.at("model").at("merges")) {
    source.merges.push_back(merge.is_string() ? split_merge(merge)
                                              : std::pair<std::string, std::string>(merge.at(0), merge.at(1)));
  }
  for (const nlohmann::json& added : json.at("added_tokens")) {
    put_token(source, added.at("id"),
              {added.at("content"), 0, added.at("special") ? TokenType::control : TokenType::user_defined});
  }
  return source;
}

/// vocab.json ("token": id) and merges.txt ("left right" per line).
inline TokenizerSource from_gpt2_files(const std::string& vocab, const std::string& merges, std::string pattern) {
  TokenizerSource source;
  source.pattern = std::move(pattern);
  const nlohmann::json json = nlohmann::json::parse(read_file(vocab));
  for (const auto& [text, id] : json.items()) put_token(source, id, {text});
  std::ifstream lines(merges);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with("#version")) source.merges.push_back(split_merge(line));
  }
  return source;
}

/// The tokenizer of a GGUF file (format: ggml/docs/gguf.md); an empty source if it has none.
inline TokenizerSource from_gguf(const std::string& path) {
  const std::string file = read_file(path);
  ByteReader in(std::as_bytes(std::span(file)));
  TokenizerSource source;
  in.read<std::uint32_t>();                        // magic
  const bool wide = in.read<std::uint32_t>() > 1;  // version 1 has 32-bit lengths
  const auto length = [&] { return wide ? in.read<std::uint64_t>() : in.read<std::uint32_t>(); };
  length();  // tensors
  const std::uint64_t n_keys = length();
  const auto scalar_size = [](std::uint32_t type) {
    return type < 2 || type == 7 ? 1 : type < 4 ? 2 : type < 7 ? 4 : 8;
  };
  constexpr std::uint32_t kString = 8, kArray = 9;
  for (std::uint64_t k = 0; k < n_keys && !in.bad(); ++k) {
    const std::string key(in.text(length()));
    std::uint32_t type = in.read<std::uint32_t>();
    std::uint64_t n = 1;
    if (type == kArray) {
      type = in.read<std::uint32_t>();
      n = length();
    }
    for (std::uint64_t i = 0; i < n && !in.bad(); ++i) {
      const std::string value(in.text(type == kString ? length() : static_cast<std::uint64_t>(scalar_size(type))));
      if (key == "tokenizer.ggml.model") {
        source.kind = value == "llama" ? TokenizerKind::spm_bpe : TokenizerKind::byte_bpe;
      } else if (key == "tokenizer.ggml.pre" && source.kind == TokenizerKind::byte_bpe) {
        source.pattern = value;
      } else if (key == "tokenizer.ggml.merges") {
        source.merges.push_back(split_merge(value));
      } else if (key.starts_with("tokenizer.ggml.") && n > 1) {
        if (source.tokens.size() < n) source.tokens.resize(n);
        const auto* bytes = reinterpret_cast<const std::byte*>(value.data());
        if (key.ends_with(".tokens")) source.tokens[i].text = value;
        if (key.ends_with(".scores")) source.tokens[i].score = load_le<float>(bytes);
        if (key.ends_with(".token_type")) source.tokens[i].type = static_cast<TokenType>(load_le<std::int32_t>(bytes));
      }
    }
  }
  source.add_space_prefix = source.kind == TokenizerKind::spm_bpe;
  return source;
}

/// A tokenizer that owns its section.
struct Built {
  std::vector<std::byte> section;
  Tokenizer tokenizer;
  std::string problem;  // empty when all went well

  explicit Built(const TokenizerSource& source) {
    Result<std::vector<std::byte>> built = build_tokenizer(source);
    if (!built) {
      problem = built.error().sentence;
      return;
    }
    section = std::move(*built);
    Result<Tokenizer> opened = Tokenizer::open(section, static_cast<std::uint32_t>(source.tokens.size()));
    if (!opened) problem = opened.error().sentence;
    if (opened) tokenizer = *opened;
  }
  Built(const Built&) = delete;
  Built& operator=(const Built&) = delete;

  Result<std::vector<std::uint32_t>> encode(std::string_view text, bool special = false,
                                            std::size_t scratch_size = Tokenizer::kScratchBytes) const {
    std::vector<std::uint32_t> ids(12 * text.size() + 8);  // a map makes up to 11 of a byte
    std::vector<std::byte> scratch(scratch_size);
    const Result<std::uint32_t> n = tokenizer.encode(text, special, ids, scratch);
    if (!n) return n.error();
    ids.resize(*n);
    return ids;
  }
  std::string decode(std::span<const std::uint32_t> ids) const {
    std::string text;
    for (const std::uint32_t id : ids) text += tokenizer.bytes(id);
    return text;
  }
};

}  // namespace qsf::test
