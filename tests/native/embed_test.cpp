// qsf-run --embed as a user types it: texts, lines, tokens and files; what a model cannot do.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "native/models.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

/// The BERT of tests/data, once per process.
std::string bert() {
  static const TempDir dir;
  static const std::string path = [] {
    const Ran ran =
        run({program("qsf-convert"), source_dir() + "/tests/data/bert", dir / "bert.qsf", "--quant-type", "f32"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return dir / "bert.qsf";
  }();
  return path;
}

Ran embed(std::vector<std::string> arguments, const std::string& input = {}) {
  std::vector<std::string> command{program("qsf-run"), bert(), "--embed"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<float> floats_of(const std::string& path) {
  const std::vector<std::byte> bytes = read_bytes(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(Embed, TextsAreALineOfJsonEach) {
  const Ran ran = embed({"One text", "Another text"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> lines = lines_of(ran.out);
  ASSERT_EQ(lines.size(), 2u);
  for (const std::string& line : lines) EXPECT_EQ(Json::parse(line).size(), 128u);
  EXPECT_NE(lines[0], lines[1]);
  EXPECT_EQ(embed({"--prompt", "Another text"}).out, lines[1] + "\n");
  EXPECT_EQ(embed({}, "One text\nAnother text\n").out, ran.out);
  const TempDir dir;
  std::ofstream(dir / "texts", std::ios::binary) << "One text\nAnother text";
  EXPECT_EQ(embed({"--prompt-file", dir / "texts"}).out, ran.out);
}

// A line that cannot be embedded is told with its number, alone: the others are as they are without it.
TEST(Embed, ALineThatCannotBeReadEndsNoBatch) {
  const std::vector<std::string> good = lines_of(embed({}, "One text\nAnother text\n").out);
  ASSERT_EQ(good.size(), 2u);
  const std::string long_line(100'000, 'x'), longer(20'000'000, 'y');
  const Ran ran = embed({}, "\nOne text\n\xff\n" + long_line + "\n" + longer + "\nAnother text\n\n");
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_EQ(lines_of(ran.out), (std::vector<std::string>{"null", good[0], "null", "null", "null", good[1], "null"}));
  const std::vector<std::string> told = lines_of(ran.err);
  ASSERT_EQ(told.size(), 5u) << ran.err;
  const std::pair<const char*, const char*> expected[] = {
      {"bad_argument", "1"}, {"bad_text", "3"}, {"context_full", "4"}, {"context_full", "5"}, {"bad_argument", "7"}};
  for (std::size_t i = 0; i < told.size(); ++i) {
    const auto& [code, line] = expected[i];
    const std::string begin = "qsf-run: " + std::string(code) + ": line " + line + " is left out: ";
    EXPECT_TRUE(told[i].starts_with(begin)) << told[i];
  }
  const TempDir dir;
  EXPECT_EQ(embed({"--logits", dir / "rows"}, "One text\n\nAnother text\n").code, 1);
  EXPECT_EQ(floats_of(dir / "rows").size(), 2 * 128u) << "rows of the others alone";
}

TEST(Embed, NumbersReadBackAsTheVeryFloats) {
  const TempDir dir;
  const Ran ran = embed({"One text", "--normalize", "yes"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(embed({"One text", "--normalize", "yes", "--logits", dir / "out"}).code, 0);
  const std::vector<float> values = floats_of(dir / "out");
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(values.size(), json.size());
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(json[i].get<float>(), values[i]);
    squares += double{values[i]} * double{values[i]};
  }
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST(Embed, HiddenStatesOfTokensAreTransformers) {
  const std::string folder = source_dir() + "/tests/data/bert";
  const Json prompt = Json::parse(read_text(folder + "/golden.json")).at("prompts").at(1);
  const std::vector<float> golden = floats_of(folder + "/golden.f32");
  const auto ids = prompt.at("ids").get<std::vector<std::uint32_t>>();
  const TempDir dir;
  const Ran ran = embed({"--pooling", "none", "--tokens", joined(ids), "--logits", dir / "out"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  const std::vector<float> values = floats_of(dir / "out");
  ASSERT_EQ(values.size(), ids.size() * 128);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], golden[prompt.at("logits_offset").get<std::size_t>() + i], 1e-4);
  }
  EXPECT_EQ(lines_of(embed({"--pooling", "none", "--tokens", joined(ids)}).out).size(), ids.size());
}

TEST(Embed, WhatDoesNotFitIsTold) {
  struct Case {
    std::vector<std::string> arguments;
    int code;
    const char* sentence;
  };
  for (const Case& c :
       {Case{{"a", "--pooling", "max"}, 2, "only none, mean, first, last"},
        Case{{"a", "--normalize", "maybe"}, 2, "yes or no"}, Case{{"a", "--prompt", "b"}, 2, "in one way only"},
        Case{{"a", "--tokens", "1,2"}, 2, "in one way only"}, Case{{"a", "--chat"}, 2, "--embed makes no text"},
        Case{{"a", "--receipt", "x"}, 2, "--embed makes no text"},
        Case{{"--tokens", "1,600"}, 1, "token 600 is not in the vocabulary of 512"},
        Case{{"--tokens", "1,2,3", "--max-seq-len", "2"}, 1, "3 tokens do not fit"},
        Case{{"--prompt-file", "/no/such/file"}, 1, "cannot read /no/such/file"}}) {
    const Ran ran = embed(c.arguments);
    EXPECT_EQ(ran.code, c.code) << c.sentence;
    EXPECT_NE(ran.err.find(c.sentence), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const auto run_without = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {program("qsf-run"), bert()});
    return run(arguments);
  };
  const Ran text = run_without({"--prompt", "Once"});
  EXPECT_EQ(text.code, 1);
  EXPECT_NE(text.err.find("this model makes embeddings, not text"), std::string::npos) << text.err;
  const Ran pooling = run_without({"--prompt", "Once", "--pooling", "mean"});
  EXPECT_EQ(pooling.code, 2);
  EXPECT_NE(pooling.err.find("are for --embed"), std::string::npos) << pooling.err;
}

TEST(Embed, AModelThatMakesTextHasEmbeddingsToo) {
  const Ran ran = run({program("qsf-run"), stories("8bit"), "--embed", "Once upon a time", "--ram-budget", "64"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(Json::parse(ran.out).size(), 1u);
}

}  // namespace
}  // namespace qsf::test
