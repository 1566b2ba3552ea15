// A tiny model to talk to: models/stories, with two tokens of its vocabulary made into ChatML's and a chat template.
#pragma once

#include <filesystem>
#include <fstream>

#include "native/models.h"
#include "tests/support/paths.h"

namespace qsf::test {

inline constexpr const char* kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
inline constexpr std::uint32_t kImStart = 2046, kImEnd = 2047;

/// A .qsf with this template (empty: none), and with what else tokenizer_config.json says.
inline std::string chat_model(const TempDir& dir, const std::string& chat_template, Json config = Json::object()) {
  const std::string from = source_dir() + "/models/stories/";
  std::filesystem::create_directories(dir / "hf");
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors"}) {
    if (std::filesystem::exists(from + name)) {
      std::filesystem::copy(from + name, dir / ("hf/" + std::string(name)),
                            std::filesystem::copy_options::overwrite_existing);
    }
  }
  Json tokenizer = Json::parse(read_text(from + "tokenizer.json"));
  for (const auto& [id, text] : {std::pair(kImStart, "<|im_start|>"), std::pair(kImEnd, "<|im_end|>")}) {
    Json& vocabulary = tokenizer["model"]["vocab"];
    for (auto at = vocabulary.begin(); at != vocabulary.end(); ++at) {
      if (at.value() != id) continue;
      vocabulary.erase(at);
      break;
    }
    tokenizer["model"]["merges"].erase(tokenizer["model"]["merges"].size() - 1);  // what made the last token
    tokenizer["added_tokens"].push_back({{"id", id}, {"content", text}, {"special", true}});
  }
  if (!chat_template.empty()) config["chat_template"] = chat_template;
  std::ofstream(dir / "hf/tokenizer.json", std::ios::binary) << tokenizer.dump();
  std::ofstream(dir / "hf/tokenizer_config.json", std::ios::binary) << config.dump();
  const Ran ran = run({program("qsf-convert"), dir / "hf", dir / "chat.qsf", "--quant-type", "8bit"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return dir / "chat.qsf";
}

}  // namespace qsf::test
