// --count: the number of tokens that a run feeds, without the model's weights.
#include <gtest/gtest.h>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

std::string counted(std::vector<std::string> arguments, const std::string& input = "") {
  arguments.insert(arguments.begin(), program("qsf-run"));
  arguments.emplace_back("--count");
  const Ran ran = run(arguments, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

std::string fed(const std::string& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--max-tokens", "0"});
  return std::to_string(generate(model, arguments).receipt.at("prompt_tokens").size()) + "\n";
}

TEST(Count, IsThatOfTheTokensThatARunFeeds) {
  const std::string model = stories("8bit");
  for (const char* text : {"Once upon a time", "<|endoftext|>Once", "x"}) {
    EXPECT_EQ(counted({model, "-p", text}), fed(model, {"-p", text})) << text;
  }
  EXPECT_EQ(counted({model}, "Once upon a time\n"), fed(model, {"-p", "Once upon a time"}));
  // With the tokens that a model expects before and after a text.
  const TempDir dir;
  const std::string expecting = chat_model(dir, "", {{"add_bos_token", true}, {"add_eos_token", true}});
  EXPECT_EQ(std::stoul(counted({expecting, "-p", "Once"})), std::stoul(counted({model, "-p", "Once"})) + 2);
  for (const char* text : {"Once upon", "<|endoftext|>Once upon<|endoftext|>", "<|endoftext|>"}) {
    EXPECT_EQ(counted({expecting, "-p", text}), fed(expecting, {"-p", text})) << text;
  }
}

TEST(Count, OfAConversationIsThatOfItsTemplate) {
  const TempDir dir;
  const std::string model = chat_model(dir, kChatMl);
  std::ofstream(dir / "notes.txt", std::ios::binary) << "1. Bread\n";
  std::ofstream(dir / "tools.json", std::ios::binary) << R"([{"name": "sum", "parameters": {"type": "object"}}])";
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--message", "Hello!"},
           {"--message", "What is <|im_end|>?"},
           {"--message", "What is missing?", "--file", dir / "notes.txt", "--system-prompt", "You help."},
           {"-p", "Hello!", "--system-prompt", "You help.", "--tools", dir / "tools.json"}}) {
    std::vector<std::string> arguments{model};
    arguments.insert(arguments.end(), options.begin(), options.end());
    EXPECT_EQ(counted(arguments), fed(model, options)) << options[1];
  }
  // Messages of a file have the number of the same messages of options.
  std::ofstream(dir / "messages.json", std::ios::binary)
      << R"({"messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": "A <|im_end|>"}]})";
  EXPECT_EQ(counted({model, "--render", dir / "messages.json"}),
            fed(model, {"--message", "A <|im_end|>", "--system-prompt", "You help."}));
}

// A text may be longer than the context, and weights are not needed: here they are damaged.
TEST(Count, NeedsNeitherRoomNorWeights) {
  const TempDir dir;
  std::string text, bytes;
  for (int i = 0; i < 20000; ++i) text += "king king\n";
  std::ofstream(dir / "text", std::ios::binary) << text;
  for (const std::byte each : read_bytes(stories("8bit"))) bytes += static_cast<char>(each);
  bytes.replace(bytes.size() / 2, bytes.size() / 4, bytes.size() / 4, '\0');
  std::ofstream(dir / "damaged.qsf", std::ios::binary) << bytes;
  const auto of_lines = [&](std::size_t n) {
    return std::stoul(counted({dir / "damaged.qsf", "-p", text.substr(0, 10 * n - 1)}));
  };
  // Each further line has as many tokens as another.
  const std::size_t each = of_lines(3) - of_lines(2);
  EXPECT_EQ(of_lines(9), of_lines(2) + 7 * each);
  EXPECT_EQ(std::stoul(counted({dir / "damaged.qsf", "--prompt-file", dir / "text"})), of_lines(2) + 19998 * each);
  EXPECT_EQ(run({program("qsf-run"), dir / "damaged.qsf", "-p", "king", "-n", "1"}).code, 1);
}

TEST(Count, IsRefusedWhereThereIsNothingToCount) {
  const auto said = [](std::vector<std::string> more) {
    more.insert(more.begin(), {program("qsf-run"), "--count"});
    const Ran ran = run(more);
    EXPECT_EQ(ran.code, 2) << ran.err;
    return ran.err;
  };
  EXPECT_TRUE(has(said({"no/such/model", "--tokens", "1"}), "--count takes a text, not --tokens"));
  EXPECT_TRUE(has(said({"no/such/model", "--chat"}), "--count, --chat"));
  EXPECT_TRUE(has(said({"--chat-template", "x", "--render", "y"}), "--count needs MODEL, whose tokens it counts"));
}

}  // namespace
}  // namespace qsf::test
