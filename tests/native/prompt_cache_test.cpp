// qsf-run --prompt-cache: prompts that are computed already are read from files, with the same bits.
#include "native/host/prompt_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

/// A text of some sixty tokens.
const std::string kLong =
    "Once upon a time there was a king who had three sons. The oldest was strong, the second was clever, and the "
    "youngest was kind to every bird and every mouse that he met in the wood.";

std::vector<fs::path> files_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

RunResult with_cache(const std::string& model, const std::string& prompt, const std::string& folder,
                     std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"-p", prompt, "-n", "6", "--ignore-eos", "--prompt-cache", folder});
  return generate(model, more);
}

std::size_t reused(const RunResult& result) { return result.receipt.at("reused_tokens").get<std::size_t>(); }

/// Expects the bits and the text that the same prompt has without a cache.
void expect_as_alone(const RunResult& result, const std::string& model, const std::string& prompt,
                     std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"-p", prompt, "-n", "6", "--ignore-eos"});
  const RunResult alone = generate(model, more);
  EXPECT_EQ(result.receipt.at("logits_hash"), alone.receipt.at("logits_hash"));
  EXPECT_EQ(result.receipt.at("text"), alone.receipt.at("text"));
  EXPECT_EQ(result.receipt.at("prompt_tokens"), alone.receipt.at("prompt_tokens"));
}

TEST(PromptCache, ThePromptsBeginningIsRead) {
  const TempDir dir;
  const std::string model = stories("8bit"), folder = dir / "new/cache";
  const RunResult first = with_cache(model, kLong, folder);
  EXPECT_EQ(reused(first), 0u);
  const std::size_t n = first.receipt.at("prompt_tokens").size();
  ASSERT_GT(n, 40u);
  EXPECT_EQ(files_in(folder).size(), 1u);
  const RunResult same = with_cache(model, kLong, folder);
  EXPECT_EQ(reused(same), n - 1);
  expect_as_alone(same, model, kLong);
  const std::string longer = kLong + " One day the king fell ill, and no doctor in the land could help him at all.";
  const RunResult more = with_cache(model, longer, folder);
  EXPECT_GE(reused(more), n - 1);
  expect_as_alone(more, model, longer);
  EXPECT_EQ(files_in(folder).size(), 1u) << "the longer one has the shorter one's tokens too";
  const std::string other = kLong.substr(0, 100) +
                            " But this is another story, of a fox and a goose and a bag of beans, of which nobody "
                            "knows the end or the beginning.";
  const RunResult branch = with_cache(model, other, folder);
  EXPECT_GT(reused(branch), 15u);
  EXPECT_LT(reused(branch), n);
  expect_as_alone(branch, model, other);
  EXPECT_EQ(files_in(folder).size(), 2u);
}

TEST(PromptCache, IsOfOneModelAndOneKvType) {
  const TempDir dir;
  const std::string folder = dir / "cache";
  (void)with_cache(stories("8bit"), kLong, folder);
  const RunResult model = with_cache(stories("4bit"), kLong, folder);
  const RunResult type = with_cache(stories("8bit"), kLong, folder, {"--kv", "8bit"});
  EXPECT_EQ(reused(model), 0u);
  EXPECT_EQ(reused(type), 0u);
  EXPECT_EQ(files_in(folder).size(), 3u);
  expect_as_alone(type, stories("8bit"), kLong, {"--kv", "8bit"});
}

TEST(PromptCache, WindowsAndStatesAreReadToo) {
  const TempDir dir;
  for (const char* name : {"mistral", "lfm2", "qwen3.5", "gpt-oss"}) {
    const std::string model = dir / (std::string(name) + ".qsf"), folder = dir / name;
    const Ran made = run({program("qsf-convert"), source_dir() + "/tests/data/" + name, model, "--quant-type", "8bit"});
    ASSERT_EQ(made.code, 0) << made.err;
    const Json golden = Json::parse(read_text(source_dir() + "/tests/data/" + name + "/golden.json"));
    const auto ids = golden.at("prompts").at(0).at("ids").get<std::vector<std::uint32_t>>();
    ASSERT_GT(ids.size(), 24u);
    const std::vector<std::uint32_t> front(ids.begin(), ids.begin() + 20);
    const std::vector<std::string> cache{"--prompt-cache", folder, "-n", "4", "--ignore-eos"};
    const auto with = [&](const std::vector<std::uint32_t>& tokens, std::vector<std::string> more) {
      more.insert(more.begin(), {"--tokens", joined(tokens)});
      return generate(model, more);
    };
    (void)with(front, cache);
    const RunResult whole = with(ids, cache), alone = with(ids, {"-n", "4", "--ignore-eos"});
    EXPECT_EQ(reused(whole), 20u) << name;
    EXPECT_EQ(whole.receipt.at("logits_hash"), alone.receipt.at("logits_hash")) << name;
    EXPECT_EQ(whole.receipt.at("generated_tokens"), alone.receipt.at("generated_tokens")) << name;
  }
}

TEST(PromptCache, TheOldestIsRemovedForRoom) {
  const TempDir dir;
  const std::string model = stories("8bit"), folder = dir / "cache";
  (void)with_cache(model, kLong, folder);
  const auto bytes = fs::file_size(files_in(folder).at(0));
  const auto prompt = [](int i) { return std::to_string(i) + " " + kLong; };
  fs::remove_all(folder);
  // Two and a half of them.
  const std::vector<std::string> limit{"--prompt-cache-limit", std::to_string(bytes * 5 / 2 / 1024) + "K"};
  const auto age = [&](const fs::path& file, int hours) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  (void)with_cache(model, prompt(1), folder, limit);
  age(files_in(folder).at(0), 5);
  const fs::path first = files_in(folder).at(0);
  (void)with_cache(model, prompt(2), folder, limit);
  EXPECT_EQ(files_in(folder).size(), 2u);
  for (const fs::path& file : files_in(folder)) {
    if (file != first) age(file, 9);
  }
  EXPECT_GT(reused(with_cache(model, prompt(1), folder, limit)), 40u) << "this use is the last now";
  (void)with_cache(model, prompt(3), folder, limit);
  EXPECT_EQ(files_in(folder).size(), 2u);
  EXPECT_TRUE(fs::exists(first));
  EXPECT_EQ(reused(with_cache(model, prompt(2), folder, {"--prompt-cache-limit", "1K"})), 0u);
  EXPECT_EQ(files_in(folder).size(), 2u) << "a prompt that is larger than the limit removes nothing";
}

TEST(PromptCache, DamagedFilesAreRemoved) {
  const TempDir dir;
  const std::string model = stories("8bit"), folder = dir / "cache";
  (void)with_cache(model, kLong, folder);
  const std::string path = files_in(folder).at(0).string();
  std::vector<std::byte> bytes = read_bytes(path);
  bytes[bytes.size() - 100] ^= std::byte{1};
  write_bytes(path, bytes);
  const RunResult made = with_cache(model, kLong, folder);
  EXPECT_EQ(reused(made), 0u);
  expect_as_alone(made, model, kLong);
  EXPECT_NE(read_bytes(path), bytes) << "it is made anew";
  EXPECT_GT(reused(with_cache(model, kLong, folder)), 40u);
  write_bytes(path, some_bytes(300));
  EXPECT_EQ(reused(with_cache(model, kLong, folder)), 0u);
}

// A file of the longer prompt's name cannot be replaced if there is a folder of that name.
TEST(PromptCache, AFileThatCannotBeWrittenLeavesTheShorterOne) {
  const TempDir dir;
  const std::string model = stories("8bit"), longer = kLong + " " + kLong;
  (void)with_cache(model, longer, dir / "other");
  const fs::path of_longer = files_in(dir / "other").at(0).filename();
  const std::string folder = dir / "cache";
  (void)with_cache(model, kLong, folder);
  const fs::path of_shorter = files_in(folder).at(0);
  fs::create_directory(fs::path(folder) / of_longer);
  const RunResult failed = with_cache(model, longer, folder);
  EXPECT_NE(failed.ran.err.find("cannot write"), std::string::npos) << failed.ran.err;
  EXPECT_GT(reused(failed), 40u);
  EXPECT_TRUE(fs::exists(of_shorter));
}

TEST(PromptCache, WhatAKilledProcessLeftIsRemoved) {
  const TempDir dir;
  const std::string folder = dir / "cache", left = folder + "/.qsf-0123456789abcdef.tmp";
  fs::create_directory(folder);
  write_bytes(left, some_bytes(10));
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  (void)with_cache(stories("8bit"), kLong, folder);
  EXPECT_FALSE(fs::exists(left));
}

TEST(PromptCache, AFolderThatCannotBeUsedIsSaid) {
  const TempDir dir;
  write_bytes(dir / "file", some_bytes(3));
  const Ran ran = run({program("qsf-run"), stories("8bit"), "-p", "x", "--prompt-cache", dir / "file"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("io_error: cannot make the folder"), std::string::npos) << ran.err;
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--bench"}, {"--interactive"}, {"-p", "x", "--session", dir / "s"}}) {
    std::vector<std::string> command{program("qsf-run"), stories("8bit"), "--prompt-cache", dir / "cache"};
    command.insert(command.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(run(command).code, 2) << wrong[0];
  }
}

TEST(PromptCache, ConversationsBeginWithIt) {
  const TempDir dir;
  const std::string model = chat_model(dir, kChatMl);
  const std::vector<std::string> how{"--temperature", "0", "--ignore-eos", "-n", "6", "--system-prompt", kLong};
  const auto chat = [&](std::vector<std::string> more) {
    std::vector<std::string> command{program("qsf-run"), model, "--chat", "--verbose"};
    command.insert(command.end(), how.begin(), how.end());
    command.insert(command.end(), more.begin(), more.end());
    return run(command, {.input = "Hello\nAnd then?\n", .environment = {}, .meanwhile = nullptr, .out = {}});
  };
  const Ran alone = chat({});
  (void)chat({"--prompt-cache", dir / "cache"});
  const Ran again = chat({"--prompt-cache", dir / "cache"});
  EXPECT_EQ(again.out, alone.out);
  EXPECT_NE(again.err.find("others were computed before"), std::string::npos) << again.err;
}

}  // namespace
}  // namespace qsf::test
