// A small file with a chat template, whose tokens are letters and the marks of ChatML, gpt-oss and Qwen.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/host.h"
#include "file/small_file.h"
#include "qsf/text/tokenizer_builder.h"

namespace qsf::chat::test {

inline constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz .,<>/|_:[]0123456789\"{}\nA=";
inline constexpr std::uint32_t kStart = 3, kEnd = 4, kFirstLetter = 13;  // ids 3 to 12 are the marks below
inline constexpr std::string_view kMarks[] = {"<|im_start|>", "<|im_end|>", "<|start|>",   "<|channel|>",
                                              "<|message|>",  "<|return|>", "<tool_call>", "</tool_call>",
                                              "<think>",      "</think>"};
inline constexpr std::uint32_t kFirstPrinted = kStart + 6;  // this mark and those after it are shown in texts
inline constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}";

inline qsf::test::SmallFile talking_model(std::string_view chat_template, bool add_bos = false) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.add_bos = add_bos;
  source.tokens = {{"<unk>", 0, TokenType::unknown}, {"<s>", 0, TokenType::control}, {"</s>", 0, TokenType::control}};
  for (const std::string_view mark : kMarks) {
    const bool printed = source.tokens.size() >= kFirstPrinted;
    source.tokens.push_back({std::string(mark), 0, printed ? TokenType::user_defined : TokenType::control});
  }
  for (const char c : kLetters) source.tokens.push_back({c == ' ' ? "▁" : std::string(1, c)});
  qsf::test::SmallOptions options;
  options.vocab_size = static_cast<std::uint32_t>((source.tokens.size() + 15) / 16 * 16);
  options.max_seq_len = 128;
  while (source.tokens.size() < options.vocab_size) source.tokens.push_back({"", 0, TokenType::unused});
  const auto built = build_tokenizer(source);
  EXPECT_TRUE(built) << built.error().sentence;
  options.tokenizer = *built;
  options.meta = {{"chat.bos_token", MetaType::text, 0, 0, "<s>"}};
  if (!chat_template.empty()) {
    options.meta.push_back({"chat.template", MetaType::text, 0, 0, std::string(chat_template)});
  }
  return small_file(options);
}

/// Returns the ids of letters, in which each mark of its number is `#` and its digit's place: "#0" is kStart.
inline std::vector<std::uint32_t> ids_of(std::string_view text) {
  std::vector<std::uint32_t> ids;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '#') {
      ids.push_back(kStart + static_cast<std::uint32_t>(text[++i] - '0'));
    } else {
      ids.push_back(kFirstLetter + static_cast<std::uint32_t>(kLetters.find(text[i])));
    }
  }
  return ids;
}

inline constexpr std::string_view kHello =
    R"({"messages":[{"role":"user","content":"hello"}],"add_generation_prompt":true})";

}  // namespace qsf::chat::test
