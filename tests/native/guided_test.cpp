// Texts that qsf-run generates under a grammar, read back by nlohmann-json and std::regex.
#include <gtest/gtest.h>

#include <regex>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

class Guided : public ::testing::Test {
 protected:
  static Ran generate(std::vector<std::string> more, const std::string& input = "") {
    more.insert(more.begin(), {program("qsf-run"), stories("8bit"), "-n", "200"});
    return run(more, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
  }
  std::string file(const std::string& text) {
    std::ofstream(dir_ / "grammar", std::ios::binary) << text;
    return dir_ / "grammar";
  }

  TempDir dir_;
};

TEST_F(Guided, JsonFollowsItsSchema) {
  const std::string schema = file(
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer",
          "minimum": 3, "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false})");
  for (int seed = 0; seed < 8; ++seed) {
    const Ran ran = generate({"-p", "Once", "--seed", std::to_string(seed), "--json-schema", schema});
    ASSERT_EQ(ran.code, 0) << ran.err;
    const Json read = Json::parse(ran.out, nullptr, false);
    ASSERT_TRUE(read.is_object() && read.size() == 2) << ran.out;
    EXPECT_TRUE(read["name"].is_string()) << ran.out;
    EXPECT_TRUE(read["age"].is_number() && read["age"] >= 3 && read["age"] <= 120) << ran.out;
  }
}

TEST_F(Guided, ExpressionsAndGbnfHoldEveryText) {
  const std::regex wanted("(yes|no), (king|queen)\\.?");
  for (const char* seed : {"1", "2", "3"}) {
    const Ran ran = generate({"-p", "Once", "--seed", seed, "--regex", "(yes|no), (king|queen)\\.?"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_TRUE(std::regex_match(ran.out, wanted)) << ran.out;
  }
  const std::string gbnf = file("\xef\xbb\xbfroot ::= \"The \" (\"cat\" | \"dog\") \" sat\" [.!]\n");
  EXPECT_TRUE(std::regex_match(generate({"-p", "Once", "--ignore-eos", "--grammar", gbnf}).out,
                               std::regex("The (cat|dog) sat[.!]")));
  EXPECT_EQ(generate({"--interactive", "--regex", "yes"}, "Once\nThen\n").out, "yes\nyes\n");
}

// Guesses of a text without a choice change no text, and are right.
TEST_F(Guided, ForcedTextIsGuessed) {
  const std::string schema = file(
      R"({"type": "object", "properties": {"a very long name": {"enum": ["Once upon a time", "There was a king"]}},
          "required": ["a very long name"], "additionalProperties": false})");
  for (const char* seed : {"1", "2"}) {
    const std::vector<std::string> given{"-p", "Once", "--seed", seed, "--json-schema", schema};
    std::vector<std::string> guessing = given;
    guessing.insert(guessing.end(), {"--speculate", "ngram", "--verbose"});
    const Ran plain = generate(given), ran = generate(guessing);
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(ran.out, plain.out);
    unsigned guessed = 0, right = 0;
    const std::size_t at = ran.err.find("guessed ");
    ASSERT_NE(at, std::string::npos) << ran.err;
    ASSERT_EQ(std::sscanf(ran.err.c_str() + at, "guessed %u tokens, %u", &guessed, &right), 2);
    EXPECT_GT(right, 4u) << ran.err;
  }
}

TEST_F(Guided, ATextThatIsCutIsReported) {
  const auto said = [&](const std::string& n) {
    return run({program("qsf-run"), stories("8bit"), "-p", "Once", "--regex", "a{30}", "-n", n}).err;
  };
  EXPECT_NE(said("2").find("the text was cut after 2 tokens"), std::string::npos);
  EXPECT_EQ(said("40").find("cut"), std::string::npos);
}

TEST_F(Guided, MistakesAreToldBeforeAToken) {
  const std::string wrong = file(R"({"uniqueItems": true})");
  const Ran ran = generate({"-p", "Once", "--json-schema", wrong});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, "");
  EXPECT_NE(ran.err.find("uniqueItems"), std::string::npos) << ran.err;
  EXPECT_EQ(generate({"-p", "Once", "--regex", "a", "--grammar", wrong}).code, 2);
  EXPECT_EQ(generate({"-p", "Once", "--regex", "a", "--tokenize"}).code, 2);
}

}  // namespace
}  // namespace qsf::test
