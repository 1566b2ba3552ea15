// qsf-run --chat and --system-prompt as a user meets them: through pipes and at a terminal.
#include "native/host/chat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "native/at_terminal.h"
#include "native/chat_model.h"

namespace qsf::test {
namespace {

class ChatTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = chat_model(dir(), kChatMl); }

  static const TempDir& dir() {
    static const TempDir made;
    return made;
  }

  static Ran run_with(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {program("qsf-run"), model_});
    return run(arguments, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
  }

  /// Lines to --chat with greedy answers of 8 tokens.
  static Ran talk(const std::string& input, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--chat", "--temperature", "0", "--max-tokens", "8", "--ignore-eos"});
    const Ran ran = run_with(more, input);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran;
  }

  static std::string ids(std::vector<std::string> more) {
    more.insert(more.begin(), "--tokenize");
    const Ran ran = run_with(more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }

  inline static std::string model_;
};

std::vector<std::uint32_t> numbers(const std::string& text) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at < text.size(); at = text.find_first_of(",\n", at) + 1)
    out.push_back(std::stoul(text.substr(at)));
  return out;
}

TEST_F(ChatTest, ASystemPromptIsRenderedByTheTemplate) {
  const std::string asked = ids({"--system-prompt", "Be kind.", "-p", "Hello there"});
  const std::string written = ids({"-p",
                                   "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHello there<|im_end|>\n"
                                   "<|im_start|>assistant\n"});
  EXPECT_EQ(asked, written);
  EXPECT_EQ(numbers(asked).front(), kImStart);
  const Ran told = run_with({"--system-prompt", "Be kind.", "-p", "Hello there", "-n", "8", "--temperature", "0"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_NE(told.out, run_with({"-p", "Hello there", "-n", "8", "--temperature", "0"}).out);
}

TEST_F(ChatTest, AMessageNeedsNoSystemPrompt) {
  const std::string written = "<|im_start|>user\nHello there<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(ids({"--message", "Hello there"}), ids({"-p", written}));
  EXPECT_EQ(ids({"--message", "Hello there", "--system-prompt", "Be kind."}),
            ids({"-p", "Hello there", "--system-prompt", "Be kind."}));
  const Ran told = run_with({"--message", "Hello there", "-n", "8", "--temperature", "0"});
  EXPECT_EQ(told.code, 0) << told.err;
  EXPECT_EQ(told.out, run_with({"-p", written, "-n", "8", "--temperature", "0"}).out);
}

TEST_F(ChatTest, ATemplateAndItsVariablesAreGiven) {
  const std::string path = dir() / "given.jinja";
  std::ofstream(path, std::ios::binary)
      << "{{ messages[-1].content }}{{ ' of ' + name if name is defined }}{% if add_generation_prompt and n == 2 %}!{% "
         "endif %}\n";
  const std::vector<std::string> given{"--message", "King", "--chat-template", path, "--template-arg", "n=2"};
  EXPECT_EQ(ids(given), ids({"-p", "King!"}));
  std::vector<std::string> named = given;
  named.insert(named.end(), {"--template-arg", "name=the hill"});
  EXPECT_EQ(ids(named), ids({"-p", "King of the hill!"}));
  EXPECT_EQ(talk("King\n", {"--chat-template", path, "--template-arg", "n=2"}).out,
            run_with({"-p", "King!", "-n", "8", "--temperature", "0", "--ignore-eos"}).out + "\n");
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"-p", "x", "--chat-template", path},
                                                {"-p", "x", "--template-arg", "n=2"},
                                                {"--message", "x", "--template-arg", "n"},
                                                {"--message", "x", "--template-arg", "=2"},
                                                {"--message", "x", "--template-arg", "messages=[]"},
                                                {"--message", "x", "--template-arg", "tools=[]"},
                                                {"--message", "x", "--template-arg", "add_generation_prompt=false"},
                                                {"--message", "x", "--template-arg", "eos_token=x"},
                                                {"--message", "x", "--template-arg", "n=\xff"},
                                                {"--message", "x", "--template-arg", "n=1", "--template-arg", "n=1"},
                                                {"--message", "x", "-p", "y"},
                                                {"--message", "x", "--bench"},
                                                {"--message", "x", "--chat"}}) {
    EXPECT_EQ(run_with(wrong).code, 2);
  }
}

TEST_F(ChatTest, APlanNeedsNoMessage) {
  const Ran ran = run_with({"--system-prompt", "Be kind.", "--memory-map"}, "not read");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "kv cache")) << ran.out;
}

TEST_F(ChatTest, SpecialTokensInAMessageAreText) {
  const std::vector<std::uint32_t> found =
      numbers(ids({"--system-prompt", "<|im_end|>", "-p", "<|im_start|>a<|im_end|>"}));
  EXPECT_EQ(std::ranges::count(found, kImStart), 3);
  EXPECT_EQ(std::ranges::count(found, kImEnd), 2);
}

TEST_F(ChatTest, WithoutATemplateItSaysSo) {
  const TempDir other;
  const std::pair<const char*, const char*> cases[] = {{"", "unsupported: the file has no chat template"},
                                                       {"{% if %}", "bad_template: line 1 of the chat template: "}};
  for (const auto& [text, sentence] : cases) {
    const std::string model = chat_model(other, text);
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"--chat"}, {"--system-prompt", "x", "-p", "y"}}) {
      std::vector<std::string> command{program("qsf-run"), model};
      command.insert(command.end(), arguments.begin(), arguments.end());
      const Ran ran = run(command, {.input = "Hello\n", .environment = {}, .meanwhile = nullptr, .out = {}});
      EXPECT_EQ(ran.code, 1);
      EXPECT_TRUE(ran.err.starts_with("qsf-run: " + std::string(sentence))) << ran.err;
      EXPECT_EQ(ran.out, "");
    }
  }
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--chat", "-p", "x"},
                                                {"--chat", "--bench"},
                                                {"--system-prompt", "x", "--tokens", "1"},
                                                {"--chat", "--receipt", "r"},
                                                {"--system-prompt", "x", "--interactive"}}) {
    const Ran ran = run_with(wrong);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_TRUE(ran.err.starts_with("qsf-run: bad_argument: ")) << ran.err;
  }
}

TEST_F(ChatTest, FilesArePutBeforeTheMessage) {
  const auto file = [](const std::string& name, const std::string& text) {
    std::ofstream(dir() / name, std::ios::binary) << text;
    return dir() / name;
  };
  const std::string plan = file("plan.txt",
                                "\xef\xbb\xbf"
                                "A king\r\nand <|im_end|>\r\n");
  const std::string code = file("a b.md", "```\nx\n````");
  const std::string both =
      "plan.txt:\n```\nA king\r\nand <|im_end|>\n```\n\na b.md:\n`````\n```\nx\n````\n`````\n\nTell me";
  const std::string asked = ids({"--message", "Tell me", "--file", plan, "--file", code});
  EXPECT_EQ(asked, ids({"--message", both}));
  EXPECT_EQ(asked, ids({"--message", "Tell me", "--file", plan, "--file", code}));
  EXPECT_EQ(ids({"--system-prompt", "Be kind.", "-p", "Tell me", "--file", plan, "--file", code}),
            ids({"--system-prompt", "Be kind.", "-p", both}));
  const std::vector<std::string> greedy{"-n", "8", "--temperature", "0", "--ignore-eos", "--message", both};
  const std::string answer = run_with(greedy).out;
  const std::string commands = "/file " + plan + "\n/file  " + code + " \nTell me\n";
  EXPECT_EQ(talk(commands).out, answer + "\n");
  EXPECT_EQ(talk("Tell me\n", {"--file", plan, "--file", code}).out, answer + "\n") << "the first message has them";
  const Ran undone = talk("/file " + code + "\n/undo\n" + commands + "Tell me\n");
  const std::string twice = talk("/file " + plan + "\n/file " + code + "\nTell me\nTell me\n").out;
  EXPECT_EQ(undone.out, twice) << "the second message has none";
  EXPECT_TRUE(has(undone.err, "a b.md is put into the next message")) << undone.err;
  EXPECT_TRUE(has(undone.err, "the files before the next message are forgotten")) << undone.err;
}

TEST_F(ChatTest, FilesThatAreRefused) {
  const auto file = [](const std::string& name, const std::string& text) {
    std::ofstream(dir() / name, std::ios::binary) << text;
    return dir() / name;
  };
  const std::vector<std::pair<std::string, std::string>> wrong{
      {file("nul", std::string("ab\0c", 4)),
       "bad_text: " + (dir() / "nul") + " has a control character: byte 2 has the value 0"},
      {file("latin", "K\xf6nig"), "is not UTF-8: byte 1 has the value 246"},
      {file("cut", "K\xc3"), "byte 1 has the value 195"},
      {file("large", std::string(200'000, 'x')), "more than the context can hold"},
      {dir() / "missing", "io_error: cannot read " + (dir() / "missing")},
      {dir() / "hf", "io_error: cannot read "},
      {dir() / "hf/", "bad_argument: "}};
  const std::string a = "Once upon a time\n", answer = talk(a).out;
  for (const auto& [path, sentence] : wrong) {
    const Ran once = run_with({"--message", "x", "--file", path});
    EXPECT_EQ(once.code, 1) << path;
    EXPECT_TRUE(has(once.err, sentence)) << once.err;
    EXPECT_EQ(run_with({"--chat", "--file", path}, a).code, 1) << path;
    const Ran chat = talk("/file " + path + "\n" + a);
    EXPECT_EQ(chat.out, answer) << path;
    EXPECT_TRUE(has(chat.err, sentence) && has(chat.err, "; the file is left out")) << chat.err;
  }
  EXPECT_TRUE(has(run_with({"--message", "x", "--file", ""}).err, "--file is given an empty FILE"));
  for (const char* bare : {"/file\n", "/file  \n"}) {
    const Ran chat = talk(bare + a);
    EXPECT_EQ(chat.out, answer);
    EXPECT_TRUE(chat.err.starts_with("qsf-run: bad_argument: /file needs the path of a text file: /file PATH\n"))
        << chat.err;
  }
  for (const std::vector<std::string>& alone : {std::vector<std::string>{"-p", "x"}, {"--interactive"}, {"--bench"}}) {
    std::vector<std::string> given = alone;
    given.insert(given.end(), {"--file", dir() / "nul"});
    const Ran ran = run_with(given);
    EXPECT_EQ(ran.code, 2) << ran.err;
    EXPECT_TRUE(has(ran.err, "--prompt-file (-f) is a file with the prompt")) << ran.err;
  }
}

TEST_F(ChatTest, ATurnFeedsWhatIsNew) {
  const Ran ran =
      talk("Once upon a time\nand then\nand then\n", {"--verbose", "--system-prompt", "Tell a long story."});
  std::vector<int> fed;
  for (std::size_t at = ran.err.find("\nprompt "); at != std::string::npos; at = ran.err.find("\nprompt ", at + 1)) {
    fed.push_back(std::atoi(ran.err.c_str() + at + 8));
  }
  ASSERT_EQ(fed.size(), 3u) << ran.err;
  const auto whole =
      static_cast<int>(numbers(ids({"--system-prompt", "Tell a long story.", "-p", "Once upon a time"})).size());
  EXPECT_EQ(fed[0], whole);
  EXPECT_LT(fed[1], whole);  // the end of the answer, and the next message
  EXPECT_LT(fed[2], whole);
}

TEST_F(ChatTest, UndoAndReset) {
  const std::string a = "Once upon a time\n", b = "There was a king\n";
  const std::string first = talk(a).out, both = talk(a + b).out;
  ASSERT_EQ(both.substr(0, first.size()), first);
  const std::string second = both.substr(first.size());
  EXPECT_NE(second, talk(b).out) << "the second message must see the first";
  EXPECT_EQ(talk(a + b + "/undo\n" + b).out, both + second);
  EXPECT_EQ(talk(a + b + "/undo\n/undo\n" + a).out, both + first);
  EXPECT_EQ(talk(a + b + "/reset\n" + a).out, both + first);
  const std::vector<std::string> system{"--system-prompt", "You are a queen."};
  EXPECT_EQ(talk(a + "/reset\n" + a, system).out, talk(a, system).out + talk(a, system).out)
      << "the system prompt stays";
  const Ran odd = talk("/undo\n/redo\n/etc/passwd is what?\n");
  EXPECT_TRUE(has(odd.err, "there is nothing to undo")) << odd.err;
  EXPECT_TRUE(has(odd.err, "there is no command /redo")) << odd.err;
  EXPECT_GT(odd.out.size(), 5u) << "a message may begin with a slash";
}

TEST_F(ChatTest, ABadLineEndsNoConversation) {
  const std::string a = "Once upon a time\n", b = "There was a king\n";
  std::string many;
  while (many.size() < 20'000) many += "x ";
  const Ran ran = talk(a + "\xff\xfe\n" + std::string(3'000'000, 'y') + "\n" + many + "\n" + b);
  EXPECT_EQ(ran.out, talk(a + b).out);
  EXPECT_TRUE(has(ran.err, "qsf-run: bad_text: ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "the line is longer than the context can hold; the message is left out")) << ran.err;
  const std::size_t at = ran.err.find("the conversation does not fit in the context of 512: the text has ");
  ASSERT_NE(at, std::string::npos) << ran.err;
  unsigned tokens = 0;
  EXPECT_EQ(std::sscanf(ran.err.c_str() + at,
                        "the conversation does not fit in the context of 512: the text has %u tokens", &tokens),
            1);
  EXPECT_GT(tokens, 10'000u) << "two of three characters are a token at least";
  EXPECT_TRUE(has(ran.err, " tokens, and there is room for 512; ")) << ran.err;
  EXPECT_TRUE(has(ran.err, "; a shorter text would help; the message is left out; /undo or /reset")) << ran.err;
}

TEST_F(ChatTest, AFullContextIsTold) {
  const std::string line = "Once upon a time there was a king\n";
  const Ran ran = talk(line + line + line + line + "/undo\n/undo\n" + line, {"--max-seq-len", "80"});
  EXPECT_TRUE(has(ran.err, "/undo or /reset makes room")) << ran.err;
  const Ran ended = run_with({"--chat", "--temperature", "0", "--ignore-eos", "--max-seq-len", "60"}, line);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_TRUE(has(ended.err, "the context of 60 tokens is full: /undo or /reset makes room")) << ended.err;
  EXPECT_TRUE(has(talk(line).err, "the answer was cut after 8 tokens")) << "as the user asked";
}

TEST_F(ChatTest, AnAnswerEndsWithWhatTheTemplateSays) {
  const TempDir other;
  const std::string zephyr =
      "{% for message in messages %}{% if message['role'] == 'user' %}{{ '<|user|>\\n' + message['content'] + "
      "eos_token "
      "+ '\\n' }}{% elif message['role'] == 'assistant' %}{{ '<|assistant|>\\n' + message['content'] + eos_token + "
      "'\\n' }}{% else %}{{ '<|system|>\\n' + message['content'] + eos_token + '\\n' }}{% endif %}{% endfor %}{% if "
      "add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";
  const std::string model = chat_model(other, zephyr, {{"eos_token", ","}});
  const Ran ran = run({program("qsf-run"), model, "--chat", "--temperature", "0", "--verbose"},
                      {.input = "Once upon a time\n", .environment = {}, .meanwhile = nullptr, .out = {}});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "ended by eos")) << ran.err;
  EXPECT_FALSE(has(ran.out, ",")) << ran.out;
  const std::string gemma =
      "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% "
      "endif "
      "%}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% "
      "set "
      "role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + "
      "'<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}";
  const Ran refused = run({program("qsf-run"), chat_model(other, gemma), "--chat", "--system-prompt", "x"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(has(refused.err, "template_refusal: System role not supported")) << refused.err;
}

constexpr const char* kControlC = "\x03";
constexpr const char* kControlD = "\x04";

TEST_F(ChatTest, ControlCEndsAnAnswerAndASecondOneTheProgram) {
  AtTerminal chat({program("qsf-run"), model_, "--chat", "--temperature", "0", "--ignore-eos", "--isa", "scalar",
                   "--threads", "1", "--color", "never"});
  chat.wait_for("> ");
  chat.type("Once upon a time\n");
  chat.wait_for("\n");  // the line's echo
  chat.wait_for(" ");   // the answer has begun
  chat.type(kControlC);
  chat.wait_for("> ");
  EXPECT_FALSE(has(chat.shown(), "is full")) << chat.shown();
  chat.type("/reset\n");  // the program goes on, and a line makes the next Ctrl-C the first again
  chat.wait_for("the conversation begins anew");
  chat.wait_for("> ");
  chat.type(kControlC);
  chat.wait_for("Ctrl-C once more ends the conversation");
  chat.wait_for("> ");
  chat.type("Once upon a time\n");
  chat.wait_for("\n");
  chat.wait_for(" ");
  chat.type(kControlC);
  chat.wait_for("> ");
  chat.type(kControlC);
  EXPECT_EQ(chat.exit_code(), 130) << chat.shown();
}

TEST_F(ChatTest, ColorsOnATerminalOnly) {
  for (const char* when : {"auto", "always", "never"}) {
    AtTerminal chat({program("qsf-run"), model_, "--chat", "-n", "2", "--color", when});
    chat.wait_for("> ");
    chat.type(kControlD);
    EXPECT_EQ(chat.exit_code(), 0);
    EXPECT_EQ(has(chat.shown(), "\x1b["), when != std::string("never")) << chat.shown();
  }
  EXPECT_FALSE(has(talk("Hello\n/help\n").err, "\x1b"));
  EXPECT_TRUE(has(talk("/help\n", {"--color", "always"}).err, "\x1b["));
}

}  // namespace
}  // namespace qsf::test
