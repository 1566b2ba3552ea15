// What is at the other end of the standard files: a pipe that nobody reads, a terminal, an address in capital letters.
#include <gtest/gtest.h>

#include <fstream>

#include "native/at_terminal.h"
#include "native/http_server.h"
#include "native/models.h"

namespace qsf::test {
namespace {

/// The exit code of a command whose standard output nobody reads, and what it said.
Ran unread(const std::string& command) {
  return run({"/bin/bash", "-c", command + " | head -c 3; exit ${PIPESTATUS[0]}"});
}

TEST(Pipes, NobodyIsToldThatNobodyReads) {
  const std::string model = stories("8bit");
  for (const std::string& more :
       {std::string(" --temperature 0 -n 400 --ignore-eos"), std::string(" --bench"), std::string(" --verbose")}) {
    const std::string command = program("qsf-run") + " " + model + " -p 'Once upon a time'" + more;
    const Ran ran = unread(command + (more == " --verbose" ? " --seed 1 -n 300 --ignore-eos 2>/dev/null" : ""));
    EXPECT_TRUE(ran.code == 141 || (more == " --bench" && ran.code == 0)) << command << ran.code << ran.err;
    EXPECT_EQ(ran.err, "") << command;
  }
  const TempDir dir;
  const Ran converted = run({"/bin/bash", "-c",
                             "( sleep 0.2; exec " + program("qsf-convert") + " " + source_dir() + "/models/stories " +
                                 (dir / "out.qsf") + " ) | true; exit ${PIPESTATUS[0]}"});
  EXPECT_EQ(converted.code, 141);
  EXPECT_EQ(converted.err, "");
  EXPECT_EQ(read_bytes(dir / "out.qsf").size(), read_bytes(model).size()) << "the model is there all the same";
  // What is lost otherwise is told as before.
  const Ran closed = run({program("qsf-run"), model, "-p", "x", "-n", "1"},
                         {.input = "", .environment = {}, .meanwhile = nullptr, .out = "-"});
  EXPECT_EQ(closed.code, 1);
  EXPECT_TRUE(has(closed.err, "io_error: cannot write standard output")) << closed.err;
}

// U+0085 and U+009B steer terminals; as bytes they may be of two tokens.
TEST(Pipes, NoControlCharacterReachesATerminalInParts) {
  const std::string text = "a\u0085b\u009b31mc\td";
  const Ran ids = run({program("qsf-run"), stories("8bit"), "--tokenize", "-p", text});
  ASSERT_EQ(ids.code, 0) << ids.err;
  const std::string tokens = ids.out.substr(0, ids.out.size() - 1);
  EXPECT_EQ(run({program("qsf-run"), stories("8bit"), "--detokenize", "--tokens", tokens}).out, text);
  AtTerminal shown({program("qsf-run"), stories("8bit"), "--detokenize", "--tokens", tokens});
  EXPECT_EQ(shown.exit_code(), 0);
  EXPECT_TRUE(has(shown.shown(), "a?b?31mc")) << shown.shown();
  for (const char* byte : {"\xc2", "\x85", "\x9b"}) EXPECT_FALSE(has(shown.shown(), byte)) << shown.shown();
}

// The documents of --rerank are shown as any text: as they are in a file, without control characters at a terminal.
TEST(Pipes, DocumentsAreShownAndReadFromWhereTheyAre) {
  const std::string model = source_dir() + "/tests/data/gguf/modernbert-reranker.gguf";
  const TempDir dir;
  std::ofstream(dir / "documents", std::ios::binary) << "left out\na \x1b[31mplan\x9b\x07\nanother \u009bplan\n";
  const std::string reads = "{ read first; \"$0\" \"$1\" --rerank \"a query\"; } < \"$2\"";
  const std::vector<std::string> command{"/bin/bash", "-c", reads, program("qsf-run"), model, dir / "documents"};
  const Ran ran = run(command);
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(has(ran.err, "bad_text: line 1 is left out: ")) << ran.err;
  EXPECT_TRUE(ran.out.ends_with("\t2\tanother \u009bplan\n")) << ran.out << ran.err;
  std::ofstream(dir / "documents", std::ios::binary) << "left out\na \x1b[31mplan\x07\nanother \u009bplan\n";
  // Texts of a pipe are kept, and bounded: documents have no room in the budget.
  const auto piped = [&](const std::string& text) {
    std::ofstream(dir / "piped", std::ios::binary) << text;
    return run(
        {"/bin/bash", "-c", "cat \"$2\" | \"$0\" \"$1\" --rerank \"a query\"", command[3], model, dir / "piped"});
  };
  const Ran same = piped(
      "\xef\xbb\xbf"
      "a \x1b[31mplan\x07\r\n\n" +
      std::string(2u << 20, 'x') + "\nanother \u009bplan");
  EXPECT_TRUE(has(same.out, "\t1\ta \x1b[31mplan\x07\n")) << same.out;
  EXPECT_TRUE(has(same.out, "\t4\tanother \u009bplan\n")) << same.out;
  EXPECT_TRUE(has(same.err, "line 3 is left out: it is longer than the context of 512 tokens can hold")) << same.err;
  std::string much;
  while (much.size() <= 1u << 20) much += std::string(999, 'x') + "\n";
  const Ran refused = piped(much);
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(
      has(refused.err, "context_full: there are more than 1048576 bytes of documents that can be read only once"))
      << refused.err;
  AtTerminal shown(command);
  EXPECT_EQ(shown.exit_code(), 0);
  EXPECT_TRUE(has(shown.shown(), "\ta ?[31mplan?\r\n")) << shown.shown();
  EXPECT_TRUE(has(shown.shown(), "\tanother ?plan\r\n")) << shown.shown();
}

TEST(Pipes, AnAddressIsOneInLettersOfEitherCase) {
  HttpServer server(read_bytes(stories("8bit")));
  const std::string url = server.url();
  ASSERT_TRUE(url.starts_with("http://"));
  const auto text = [](const std::string& model) {
    return run({program("qsf-run"), model, "-p", "Once upon a time", "-n", "5", "--temperature", "0"});
  };
  const Ran file = text(stories("8bit"));
  for (const char* scheme : {"HTTP://", "Http://"}) {
    const Ran ran = text(scheme + url.substr(7));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, file.out);
  }
}

}  // namespace
}  // namespace qsf::test
