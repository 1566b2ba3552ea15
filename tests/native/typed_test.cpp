// What is typed at a terminal: lines that are edited and remembered, messages of several lines, and the end.
#include <gtest/gtest.h>

#include <thread>

#include "native/at_terminal.h"
#include "native/chat_model.h"

namespace qsf::test {
namespace {

constexpr const char *kUp = "\x1b[A", *kLeft = "\x1b[D", *kControlD = "\x04", *kControlC = "\x03";
const std::string kPaste = "\x1b[200~", kPasteEnd = "\x1b[201~";

/// --chat and --interactive at a terminal with (xterm) and without (dumb) a line editor.
class Typed : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = chat_model(dir(), kChatMl); }
  static const TempDir& dir() {
    static const TempDir made;
    return made;
  }
  static std::vector<std::string> command(std::vector<std::string> more) {
    more.insert(more.begin(),
                {program("qsf-run"), model_, "--temperature", "0", "-n", "6", "--ignore-eos", "--color", "never"});
    return more;
  }
  static std::vector<const char*> kinds() {
#if QSF_HAVE_LIBEDIT
    return {"xterm", "dumb"};
#else
    return {"dumb"};
#endif
  }

  /// The answer to a message, which tells messages apart: through a system prompt, without a terminal.
  static std::string answer(const std::string& message) {
    std::vector<std::string> words = command({"--system-prompt", "S", "-p", message});
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }
  static void expect_answer(AtTerminal& chat, const std::string& message) {
    chat.wait_for(answer(message) + "\r\n");
    chat.wait_for("> ");
  }

  inline static std::string model_;
};

TEST_F(Typed, AMessageMayHaveSeveralLines) {
  ASSERT_NE(answer("Once\nthere was"), answer("Once there was"));
  for (const char* kind : kinds()) {
    AtTerminal chat(command({"--chat", "--system-prompt", "S"}), kind);
    chat.wait_for("> ");
    for (const char* typed :
         {"\"\"\"Once\nthere was\"\"\"\n", "\"\"\"\nOnce\nthere was\n\"\"\"\n", "Once\\\nthere was\n"}) {
      chat.type(typed);
      chat.wait_for(". ");
      expect_answer(chat, "Once\nthere was");
      chat.type("/reset\n");
      chat.wait_for("begins anew");
      chat.wait_for("> ");
    }
    chat.type("/quit\n");
    EXPECT_EQ(chat.exit_code(), 0) << chat.shown();
  }
}

TEST_F(Typed, AMeasurementShowsItsProgressAtATerminal) {
  const std::vector<std::string> command{program("qsf-run"), stories("8bit"),
                                         "--perplexity",     source_dir() + "/models/stories/README.md",
                                         "--window",         "64"};
  AtTerminal terminal(command);
  terminal.wait_for(" of 8; perplexity so far ");
  terminal.wait_for(" s left");
  terminal.wait_for("perplexity  ");
  EXPECT_EQ(terminal.exit_code(), 0) << terminal.shown();
  EXPECT_EQ(run(command).err, "");
}

#if QSF_HAVE_LIBEDIT
TEST_F(Typed, APasteIsOneMessage) {
  AtTerminal chat(command({"--chat", "--system-prompt", "S"}), "xterm");
  chat.wait_for("\x1b[?2004h");
  chat.wait_until_it_edits();
  chat.type(kPaste + "Once\rthere was\r" + kPasteEnd + "\r");
  expect_answer(chat, "Once\nthere was");
  chat.type("/exit\r");
  EXPECT_EQ(chat.exit_code(), 0) << chat.shown();
}

TEST_F(Typed, LinesAreEditedAndRemembered) {
  AtTerminal chat(command({"--chat", "--system-prompt", "S"}), "xterm");
  chat.wait_for("> ");
  chat.type(std::string("Once thre") + kLeft + kLeft + "e\x05\x7f" + "e\r");  // ^E goes to the end, ^? deletes
  expect_answer(chat, "Once there");
  chat.type("/reset\r");
  chat.wait_for("begins anew");
  chat.wait_for("> ");
  chat.type(std::string(kUp) + kUp + "\r");
  expect_answer(chat, "Once there");
  chat.type("/reset\r");
  chat.wait_for("begins anew");
  chat.wait_for("> ");
  chat.type("K\xc3\xb6nig\r");
  expect_answer(chat, "K\xc3\xb6nig");
  chat.type(std::string("half a line") + kControlC);
  chat.wait_for("Ctrl-C once more ends the conversation");
  chat.type(kControlD);
  EXPECT_EQ(chat.exit_code(), 0) << chat.shown();
}

// A terminal's own lines end after 4,095 bytes, and the rest is lost.
TEST_F(Typed, ALongLineIsTakenWhole) {
  std::string line;
  while (line.size() < 9000) line += "word ";
  const Ran piped =
      run(command({"--interactive"}), {.input = line + "\n", .environment = {}, .meanwhile = nullptr, .out = {}});
  const std::size_t at = piped.err.find("the text has ");
  ASSERT_NE(at, std::string::npos) << piped.err;
  const std::string expected = piped.err.substr(at, piped.err.find(',', at) - at);  // its number of tokens
  for (const bool marked : {true, false}) {
    AtTerminal text(command({"--interactive"}), "xterm");
    text.wait_for("> ");
    text.wait_until_it_edits();
    std::thread typist([&] { text.type((marked ? kPaste + line + kPasteEnd : line) + "\r"); });
    text.wait_for(expected);
    typist.join();
    text.wait_for("the line is left out");
    text.wait_for("> ");
    text.type("/exit\r");
    EXPECT_EQ(text.exit_code(), 0) << text.shown();
  }
}

// The program stands still within an answer, so that no line editor reads what is typed.
TEST_F(Typed, WhatIsTypedWithinAnAnswerIsTakenWhole) {
  std::string line;
  while (line.size() < 9000) line += "word ";
  const Ran piped =
      run(command({"--interactive"}), {.input = line + "\n", .environment = {}, .meanwhile = nullptr, .out = {}});
  const std::size_t at = piped.err.find("the text has ");
  ASSERT_NE(at, std::string::npos) << piped.err;
  const std::string expected = piped.err.substr(at, piped.err.find(',', at) - at);
  AtTerminal text({program("qsf-run"), model_, "--temperature", "0", "-n", "200", "--ignore-eos", "--color", "never",
                   "--interactive"},
                  "xterm");
  text.wait_for("> ");
  text.wait_until_it_edits();
  text.type("Once\r");
  text.wait_for("\n");
  text.wait_for_more();
  text.pause();
  text.type(kPaste + line + kPasteEnd + "\r");
  text.go_on();
  text.wait_for(expected);
  text.type("/exit\r");
  EXPECT_EQ(text.exit_code(), 0) << text.shown();
}

TEST_F(Typed, TheTerminalHasItsOwnSettingsAfterwards) {
  std::string words;
  for (const std::string& word : command({"--interactive"})) words += "'" + word + "' ";
  for (const std::string end : {"/exit\r", kControlD, kControlC}) {
    AtTerminal text({"/bin/sh", "-c", "trap : INT; " + words + "; stty -a"}, "xterm");
    text.wait_for("> ");
    text.wait_until_it_edits();
    text.type(end);
    EXPECT_EQ(text.exit_code(), 0) << text.shown();
    const std::string& shown = text.shown();
    EXPECT_GT(shown.rfind("\x1b[?2004l"), shown.rfind("\x1b[?2004h")) << shown;
    for (const std::string setting : {"icanon", "echo ", "icrnl", "opost"}) {
      EXPECT_NE(shown.find(setting), std::string::npos) << setting << " in " << shown;
      EXPECT_EQ(shown.find("-" + setting), std::string::npos) << setting << " in " << shown;
    }
  }
}

TEST_F(Typed, ALineBeyondEveryContextIsLeftOut) {
  const std::string line(300'000, 'y');
  for (const bool marked : {true, false}) {
    AtTerminal chat(command({"--chat", "--system-prompt", "S"}), "xterm");
    chat.wait_for("> ");
    chat.wait_until_it_edits();
    std::thread typist([&] { chat.type((marked ? kPaste + line + kPasteEnd : line) + "\r"); });
    chat.wait_for("the line is longer than the context can hold");
    typist.join();
    chat.wait_for("> ");
    chat.type("Once\r");
    expect_answer(chat, "Once");
    chat.type(kControlD);
    EXPECT_EQ(chat.exit_code(), 0) << chat.shown();
  }
}

#endif

// Lines of a pipe are messages as they are, except that /exit ends a conversation.
TEST_F(Typed, PipesHaveNoMarks) {
  const auto talk = [](const std::string& input, const char* how) {
    return run(command({how}), {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}}).out;
  };
  EXPECT_EQ(talk("Once\n/exit\nthere\n", "--chat"), talk("Once\n", "--chat"));
  EXPECT_NE(talk("Once\n/exit\n", "--interactive"), talk("Once\n", "--interactive"));
  EXPECT_EQ(talk("Once\\\nthere\n", "--interactive").find("\n"), talk("Once\\\n", "--interactive").find("\n"));
}

}  // namespace
}  // namespace qsf::test
