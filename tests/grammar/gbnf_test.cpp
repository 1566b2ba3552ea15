#include <gtest/gtest.h>

#include <array>

#include "tests/grammar/texts.h"

namespace qsf::grammar {
namespace {

constexpr const char* kJson = R"(# JSON, as a grammar
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
)";

TEST(Gbnf, FollowsRulesThatContainThemselves) {
  Made made(Grammar::gbnf, kJson);
  ASSERT_TRUE(made) << made.sentence();
  EXPECT_TRUE(made.accepts(R"({"a": [1, 2.5e3, {"b": "c\u00e9\n"}], "d": null})"));
  EXPECT_TRUE(made.accepts("{\n  \"é\": true}\n"));
  EXPECT_FALSE(made.accepts(R"({"a": [1, 2})"));
  EXPECT_FALSE(made.accepts(R"({"a": 01})"));
  EXPECT_FALSE(made.accepts(R"(["a"])"));
  std::string deep = "{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}";
  EXPECT_TRUE(made.accepts(deep));
  deep.erase(deep.size() - 2, 1);
  EXPECT_FALSE(made.accepts(deep));
}

TEST(Gbnf, CountsAndGroups) {
  Made made(Grammar::gbnf, "root ::= (\"ab\" | [0-9]{2}){2,3} tail?\ntail ::= \"-\" .\n");
  ASSERT_TRUE(made) << made.sentence();
  EXPECT_TRUE(made.accepts("ab12"));
  EXPECT_TRUE(made.accepts("12ab34-é"));
  EXPECT_FALSE(made.accepts("ab"));
  EXPECT_FALSE(made.accepts("ab1"));
  EXPECT_FALSE(made.accepts("abababab"));
}

TEST(Gbnf, ForcesTextWithoutAChoice) {
  Made made(Grammar::gbnf, "root ::= \"The answer is \" [0-9] \".\"");
  ASSERT_TRUE(made) << made.sentence();
  char out[64];
  EXPECT_EQ(std::string_view(out, made->forced(out)), "The answer is ");
  ASSERT_TRUE(*made->accept("The answer is 4"));
  EXPECT_EQ(std::string_view(out, made->forced(out)), ".");
  ASSERT_TRUE(*made->accept("."));
  EXPECT_EQ(made->forced(out), 0u);
  EXPECT_TRUE(made->can_end());
}

TEST(Gbnf, RefusesMistakesAndHostileGrammars) {
  const auto refusal = [](const std::string& text) {
    Made made(Grammar::gbnf, text);
    const std::string sentence = made.sentence();
    EXPECT_FALSE(sentence.empty()) << text.substr(0, 80);
    return sentence;
  };
  EXPECT_NE(refusal("root ::= a\na ::= a \"x\" | \"y\"").find("'a' begins with itself"), std::string::npos);
  EXPECT_NE(refusal("root ::= a\na ::= \"x\"? b\nb ::= a").find("begins with itself"), std::string::npos);
  EXPECT_NE(refusal("root ::= \"x\" root").find("never come to an end"), std::string::npos);
  EXPECT_NE(refusal("root ::= b").find("'b', which it does not define"), std::string::npos);
  EXPECT_NE(refusal("start ::= \"a\"").find("no rule 'root'"), std::string::npos);
  EXPECT_NE(refusal("root ::= \"a").find("line 1"), std::string::npos);
  EXPECT_NE(refusal("root ::= \"a\"\nroot ::= \"b\"").find("defined twice"), std::string::npos);
  refusal("root ::= [a");
  refusal("root ::= (\"a\"");
  refusal("root = \"a\"");
  refusal("root ::= \"a\"{3,2}");
  refusal(std::string("root ::= ") + std::string(1000, '(') + "\"a\"" + std::string(1000, ')'));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 3000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  EXPECT_NE(refusal(chain + "r3000 ::= \"a\"").find("levels"), std::string::npos);
}

/// Rules of which each round of the analysis settles one or two, because each waits for one on the other side of those
/// that are settled. Each has parts that are looked at before that rule.
std::string many_rounds(std::uint32_t n_rules, std::uint32_t n_parts) {
  const auto name = [](std::uint32_t i) { return "\"b\" r" + std::to_string(i); };
  std::string parts, text = "root ::= " + name(0);
  for (std::uint32_t i = 1; i < n_rules; ++i) text += " | " + name(i);  // which gives the rules their order
  for (std::uint32_t i = 0; i < n_parts; ++i) parts += "\"a\"? ";
  for (std::uint32_t i = 0; i < n_rules; ++i) {
    const std::uint32_t other = n_rules - 1 - i;
    const std::uint32_t next = i < other ? other : other + 1;
    text += "\nr" + std::to_string(i) + " ::= " + parts + (next == i ? "\"b\"" : name(next));
  }
  return text;
}

TEST(Gbnf, CountsTheStepsOfRulesThatWaitForEachOther) {
  std::array<std::uint64_t, 2> steps{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    Made made(Grammar::gbnf, many_rounds(40u << i, 20));
    ASSERT_TRUE(made) << made.sentence();
    steps[i] = made->steps();
  }
  EXPECT_NEAR(static_cast<double>(steps[1]) / static_cast<double>(steps[0]), 4, 0.5);  // the square of the rules
  Made many(Grammar::gbnf, many_rounds(2000, 40));
  EXPECT_NE(many.sentence().find("more than 20000000 steps"), std::string::npos) << many.sentence();
}

TEST(Gbnf, StopsAGrammarWhoseStatesGrow) {
  // Each byte multiplies the ways to have read the text.
  Made made(Grammar::gbnf,
            "root ::= ((\"a\"{1,1000} \"b\"?){1,1000} [ac]{0,900}){1,1000} (\"a\" | \"aa\" root){0,1000} \"c\"");
  ASSERT_TRUE(made) << made.sentence();
  std::uint32_t bytes = 0;
  for (bool ended = false; bytes < 3000 && !ended; ++bytes) {
    const Result<bool> follows = made->accept("a");
    ended = !follows || !*follows;
  }
  EXPECT_LT(bytes, 3000u);
  EXPECT_LT(made->steps(), 1'200'000u);  // twice what they are; the memory for its states ends it
}

TEST(Choices, AllowTheirTextsOnly) {
  const std::string_view texts[] = {"yes", "no", "not sure", "né"};
  std::vector<std::byte> memory(Grammar::kMemory);
  Result<Grammar> made = Grammar::choices(texts, memory);
  ASSERT_TRUE(made) << made.error().sentence;
  for (const std::string_view text : texts) {
    made->reset();
    EXPECT_TRUE(*made->accept(text)) << text;
    EXPECT_TRUE(made->can_end()) << text;
  }
  made->reset();
  EXPECT_FALSE(*made->accept("nope"));
  EXPECT_TRUE(*made->accept("not"));
  EXPECT_FALSE(made->can_end());
}

}  // namespace
}  // namespace qsf::grammar
