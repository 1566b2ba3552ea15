// qsf-run --session: a text or a conversation that goes on in another run is the one that a single run makes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "native/chat_model.h"
#include "native/host/saved_file.h"
#include "native/host/saved_note.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

namespace fs = std::filesystem;

Ran run_with(const std::string& model, std::vector<std::string> more, const std::string& input = "") {
  if (std::ranges::find(more, "-n") == more.end()) more.insert(more.end(), {"-n", "8"});
  more.insert(more.begin(), {program("qsf-run"), model, "--temperature", "0", "--ignore-eos"});
  return run(more, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
}

std::string out_of(const std::string& model, std::vector<std::string> more, const std::string& input = "") {
  const Ran ran = run_with(model, std::move(more), input);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.out;
}

std::vector<std::string> names_in(const TempDir& dir) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Session, ATextGoesOnInAnotherRun) {
  const std::string model = stories("8bit");
  const std::string whole = out_of(model, {"-p", "Once upon a time", "-n", "24"});
  const TempDir dir;
  const std::string file = dir / "story";
  const std::string first = out_of(model, {"-p", "Once upon a time", "--session", file});
  const std::vector<std::byte> saved = read_bytes(file);
  const std::string second = out_of(model, {"-p", "", "--session", file, "--stream-all", "--chunk", "3"});
  EXPECT_NE(read_bytes(file), saved);
  const std::string third = out_of(model, {"-p", "", "--session", file, "--max-seq-len", "64"});
  EXPECT_EQ(first + second + third, whole);
  EXPECT_EQ(names_in(dir), std::vector<std::string>{"story"});
}

TEST(Session, IdsAndLinesGoOnToo) {
  const std::string model = stories("8bit");
  const TempDir dir;
  const RunResult whole = generate(model, {"--tokens", "0,1700,328,625", "-n", "4", "--ignore-eos"});
  const auto made = whole.receipt.at("generated_tokens").get<std::vector<std::uint32_t>>();
  std::vector<std::uint32_t> ids{0, 1700, 328, 625};
  ids.insert(ids.end(), made.begin(), made.end());
  ids.push_back(7);
  const RunResult alone = generate(model, {"--tokens", joined(ids), "-n", "4", "--ignore-eos"});
  out_of(model, {"--tokens", "0,1700,328,625", "-n", "4", "--session", dir / "ids"});
  const RunResult rest = generate(model, {"--tokens", "7", "-n", "4", "--ignore-eos", "--session", dir / "ids"});
  EXPECT_EQ(rest.receipt.at("generated_tokens"), alone.receipt.at("generated_tokens"));
  EXPECT_EQ(rest.receipt.at("logits_hash"), alone.receipt.at("logits_hash"));

  const std::string lines = out_of(model, {"--interactive"}, "Once upon a time\nThen\n");
  const std::string first = out_of(model, {"--interactive", "--session", dir / "lines"}, "Once upon a time\n");
  EXPECT_EQ(first + out_of(model, {"--interactive", "--session", dir / "lines"}, "Then\n"), lines);
}

TEST(Session, AConversationGoesOnInAnotherRun) {
  const TempDir dir;
  const std::string model = chat_model(dir, kChatMl);
  const std::vector<std::string> chat{"--chat", "--system-prompt", "Be kind."};
  const std::string whole = out_of(model, chat, "Hello there\nAnd then?\nWhy?\n");
  std::vector<std::string> saved = chat;
  saved.insert(saved.end(), {"--session", dir / "talk"});
  const std::string first = out_of(model, saved, "Hello there\n");
  const std::string second = out_of(model, {"--message", "And then?", "--session", dir / "talk"});
  const std::string third = out_of(model, saved, "Why?\n");
  EXPECT_EQ(first + second + "\n" + third, whole);

  const Result<SavedFile> file = SavedFile::open(dir / "talk");
  ASSERT_TRUE(file) << file.error().sentence;
  const Result<SavedNote> note = SavedNote::read(*file->note());
  ASSERT_TRUE(note) << note.error().sentence;
  ASSERT_EQ(note->turns.size(), 7u);
  EXPECT_EQ(note->turns[0].role, "system");
  EXPECT_EQ(note->turns[3].content, "And then?");
  EXPECT_EQ(note->turns[4].role, "assistant");

  const Ran undone = run_with(model, saved, "/undo\n/undo\n/undo\n/undo\nHello there\n");
  EXPECT_EQ(undone.out, first) << undone.err;
  EXPECT_TRUE(has(undone.err, "there is nothing to undo"));
  const Ran other = run_with(model, {"--chat", "--system-prompt", "Be brief.", "--session", dir / "talk"}, "x\n");
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(has(other.err, "has another system prompt")) << other.err;
}

TEST(Session, ATurnComputesOnlyWhatIsNew) {
  const TempDir dir;
  const std::string model = chat_model(dir, kChatMl);
  out_of(model, {"--message", "Tell me of a king and of his three sons.", "--session", dir / "talk"});
  const RunResult next = generate(model, {"--message", "And then?", "-n", "8", "--session", dir / "talk"});
  const auto prompt = next.receipt.at("prompt_tokens").size();
  const auto reused = next.receipt.at("reused_tokens").get<std::size_t>();
  EXPECT_GT(reused, 20u);
  EXPECT_LT(prompt - reused, 40u);
}

/// The file stays as it is, and the run says why it ends.
void expect_refused(const std::string& model, std::vector<std::string> more, const std::string& words,
                    const std::string& input = "") {
  const auto at = std::ranges::find(more, "--session");
  ASSERT_NE(at, more.end());
  const std::vector<std::byte> before = read_bytes(at[1]);
  const Ran ran = run_with(model, more, input);
  EXPECT_NE(ran.code, 0) << words;
  EXPECT_TRUE(has(ran.err, words)) << ran.err;
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_EQ(ran.out, "") << words;
  EXPECT_EQ(read_bytes(at[1]), before) << words;
}

TEST(Session, AFileThatDoesNotFitIsRefused) {
  const TempDir dir;
  const std::string model = stories("8bit"), file = dir / "story";
  out_of(model, {"-p", "Once upon a time", "--session", file});
  expect_refused(stories("4bit"), {"-p", "x", "--session", file}, "mismatch: " + file + ": the saved sequence is of");
  expect_refused(model, {"-p", "x", "--session", file, "--kv", "8bit"}, "a session with kv f16 would do");
  expect_refused(model, {"-p", "x", "--session", file, "--max-seq-len", "8"}, "context_full: ");
  expect_refused(model, {"--interactive", "--session", file, "--max-seq-len", "8"}, "context_full: ", "x\n");
  const std::vector<std::byte> bytes = read_bytes(file);
  std::vector<std::byte> damaged = bytes;
  damaged[bytes.size() / 2] ^= std::byte{8};
  write_bytes(dir / "damaged", damaged);
  expect_refused(model, {"-p", "x", "--session", dir / "damaged"}, "bad_checksum: ");
  write_bytes(dir / "cut", {bytes.begin(), bytes.end() - 1});
  expect_refused(model, {"-p", "x", "--session", dir / "cut"}, "truncated: ");
  write_bytes(dir / "short", {bytes.begin(), bytes.begin() + 60});
  expect_refused(model, {"-p", "x", "--session", dir / "short"}, "truncated: ");
  write_bytes(dir / "empty", {});
  expect_refused(model, {"-p", "x", "--session", dir / "empty"}, "truncated: ");
  write_bytes(dir / "other", some_bytes(1000));
  expect_refused(model, {"-p", "x", "--session", dir / "other"}, "bad_magic: ");
  EXPECT_NE(run_with(model, {"-p", "x", "--session", dir / ""}).code, 0);
}

/// A GGUF states no checksums of its own; the files are those of the .qsf file that would be made of it.
TEST(Session, AModelThatIsNoQsfFileHasTheSameFiles) {
  const TempDir dir;
  const auto convert = [&](const std::string& from, const std::string& to, const std::string& type) {
    const Ran ran = run({program("qsf-convert"), from, dir / to, "--quant-type", type});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return dir / to;
  };
  const std::string gguf = convert(source_dir() + "/models/stories", "m.gguf", "q8_0"),
                    qsf = convert(gguf, "m.qsf", "q8_0"),
                    coarse = convert(source_dir() + "/models/stories", "q4.gguf", "q4_0"),
                    other = convert(coarse, "other.gguf", "q8_0"), file = dir / "story";
  const std::string whole = out_of(qsf, {"-p", "Once upon a time", "-n", "32"});
  std::string text = out_of(gguf, {"-p", "Once upon a time", "--session", file, "--cache", "none"});
  text += out_of(qsf, {"-p", "", "--session", file});
  for (int i = 0; i < 2; ++i) text += out_of(gguf, {"-p", "", "--session", file, "--cache", dir / "fronts"});
  EXPECT_EQ(text, whole);
  // The same tables, except for the checksums of the weights.
  const Ran refused = run_with(other, {"-p", "x", "--session", file, "--cache", "none"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(has(refused.err, "mismatch: ")) << refused.err;
}

TEST(Session, ATextIsNoConversationAndTheOtherWayRound) {
  const TempDir dir;
  const std::string model = chat_model(dir, kChatMl);
  out_of(model, {"-p", "Once", "--session", dir / "text"});
  out_of(model, {"--message", "Hello", "--session", dir / "talk"});
  expect_refused(model, {"--message", "Hello", "--session", dir / "text"}, "has a text");
  expect_refused(model, {"--chat", "--session", dir / "text"}, "has a text", "Hello\n");
  expect_refused(model, {"-p", "Once", "--session", dir / "talk"}, "has a conversation");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--bench"},
                                                {"--embed", "-p", "x"},
                                                {"--tokenize", "-p", "x"},
                                                {"--perplexity", dir / "text"}}) {
    std::vector<std::string> more = wrong;
    more.insert(more.end(), {"--session", dir / "new"});
    EXPECT_EQ(run_with(model, more).code, 2) << wrong[0];
  }
  EXPECT_FALSE(fs::exists(dir / "new"));
}

TEST(Session, AnErrorLeavesTheFileAsItWas) {
  const TempDir dir;
  const std::string model = stories("8bit"), file = dir / "story";
  out_of(model, {"-p", "Once upon a time", "--session", file});
  expect_refused(model, {"--tokens", "99999", "--session", file}, "bad_token: ");
  const Ran folder = run_with(model, {"-p", "x", "--session", dir / "no/folder"});
  EXPECT_EQ(folder.code, 1);
  EXPECT_TRUE(has(folder.err, "io_error: cannot write")) << folder.err;
  EXPECT_EQ(folder.out, "") << "a text that could not be saved";
}

TEST(SavedNote, IsReadAsItWasWritten) {
  constexpr const char* kMore =
      R"("reasoning_content":"\u0001","tool_calls":[{"z":[],"a":{"k":-1.50e2,"l":[true,null]}}])";
  const SavedNote note{{{"user", "a \"quoted\"\nline \\ \x01"}, {"assistant", "Größe", kMore}}, " re\tst"};
  const Result<SavedNote> read = SavedNote::read(note.text());
  ASSERT_TRUE(read) << read.error().sentence;
  EXPECT_EQ(read->rest, note.rest);
  ASSERT_EQ(read->turns.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->turns[i].role, note.turns[i].role);
    EXPECT_EQ(read->turns[i].content, note.turns[i].content);
    EXPECT_EQ(read->turns[i].more, note.turns[i].more);
  }
  EXPECT_EQ(SavedNote{}.text(), "");
  EXPECT_EQ(SavedNote({}, "x").text(), R"({"rest":"x"})");
  EXPECT_TRUE(SavedNote::read("{}") && SavedNote::read(R"({"other":[1,2]})"));
  for (const char* wrong :
       {"[]", "x", R"({"rest":1})", R"({"messages":{}})", R"({"messages":[1]})", R"({"messages":[{"role":"user"}]})",
        R"({"messages":[{"role":"user","content":[]}]})", R"({"messages":[{"content":"a"}]})"}) {
    EXPECT_EQ(error_of(SavedNote::read(wrong)).code, ErrorCode::bad_input) << wrong;
  }
}

}  // namespace
}  // namespace qsf::test
