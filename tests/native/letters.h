// A model small enough to be worked out in doubles, that reads letters, and texts of them.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "file/small_file.h"
#include "native/models.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::test {

using Ids = std::vector<std::uint32_t>;

inline constexpr std::uint32_t kBegin = 1;
inline constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz .,<>/";

/// A vocabulary of letters, each a token of its own behind <unk>, <s> and </s>.
inline std::vector<std::byte> letters(bool add_bos) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.add_bos = add_bos;
  source.tokens = {{"<unk>", 0, TokenType::unknown}, {"<s>", 0, TokenType::control}, {"</s>", 0, TokenType::control}};
  for (const char c : kLetters) source.tokens.push_back({c == ' ' ? "▁" : std::string(1, c)});
  while (source.tokens.size() < 40) source.tokens.push_back({"", 0, TokenType::unused});
  const auto built = build_tokenizer(source);
  EXPECT_TRUE(built) << built.error().sentence;
  return *built;
}

/// Text of those letters, with what would be special tokens if it were no plain text.
inline std::string some_text(std::size_t n) {
  std::string text = "<s>once</s> ";
  for (std::size_t i = text.size(); i < n; ++i) text += kLetters[(i * 7 + i * i * 3 + 5) % kLetters.size()];
  return text;
}

inline Ids ids_of(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<std::uint32_t>(3 + kLetters.find(c)));
  return ids;
}

/// A model and a text in files.
struct Measurable {
  TempDir dir;
  std::string model = dir / "model.qsf", text = dir / "text";

  void write(const SmallFile& file, std::string_view words) {
    write_bytes(model, file.bytes);
    std::ofstream(text, std::ios::binary) << words;
  }
  RunResult measure(std::vector<std::string> more) const {
    more.insert(more.begin(), {"--perplexity", text});
    return generate(model, more);
  }
};

}  // namespace qsf::test
