#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "tests/grammar/texts.h"
#include "tests/support/paths.h"

namespace qsf::grammar {
namespace {

TEST(Regex, EqualsTheStandardLibrarysOnAllShortTexts) {
  constexpr const char* kPatterns[] = {"a*b",
                                       "(a|b)*c",
                                       "a{2,3}",
                                       "(ab){1,2}c?",
                                       "[^a]b*",
                                       "a|bc|",
                                       "^a$",
                                       "(?:a|ab)c",
                                       "(a*)*b",
                                       "a+?b{0,2}",
                                       "(?=a).b",
                                       "(?!a)[abc]+",
                                       "(?=.*c)[ab]*c",
                                       "^(a|b$)",
                                       "[a-b]+c{2}",
                                       "(?!ab|ba)[abc]{2}",
                                       "(a?){3}",
                                       "((a|b)(b|c)){2}",
                                       "a(?=b)b|c(?!c)",
                                       "(?!.*cc).*",
                                       "a(?!$)b?"};
  std::vector<std::string> texts{""};
  for (std::size_t i = 0; texts[i].size() < 6; ++i) {
    for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
  }
  for (const char* pattern : kPatterns) {
    Made made(Grammar::regex, pattern);
    ASSERT_TRUE(made) << pattern << ": " << made.sentence();
    const std::regex other(pattern, std::regex::ECMAScript);
    for (const std::string& text : texts) {
      ASSERT_EQ(made.accepts(text), std::regex_match(text, other)) << pattern << " on " << text;
    }
  }
}

/// Strict and lenient forms mean what they mean to the RegExp of Node, and what has no meaning there is refused.
TEST(Regex, LenientFormsAreThoseOfEcmaScript) {
  const Json read = read_json(source_dir() + "/tests/grammar/expressions.json");
  std::size_t n_refused = 0;
  for (const Json& each : read.at("cases")) {
    const std::string pattern = each.at("pattern").get<std::string>();
    Made made(Grammar::regex, pattern);
    const bool is_refused = each.at("accepts").is_null() || each.contains("why");
    // A grammar without any text is refused too.
    const bool is_empty = !is_refused && each.at("accepts").empty();
    EXPECT_EQ(static_cast<bool>(made), !is_refused && !is_empty) << pattern << " " << made.sentence();
    n_refused += is_refused ? 1 : 0;
    if (is_refused) {
      EXPECT_NE(made.sentence().find("at byte "), std::string::npos) << pattern << " " << made.sentence();
    }
    if (is_refused || !made) continue;
    const auto accepted = each.at("accepts").get<std::set<std::string>>();
    for (const Json& text : read.at("texts")) {
      const std::string given = text.get<std::string>();
      ASSERT_EQ(made.accepts(given), accepted.contains(given)) << pattern << " on '" << given << "'";
    }
  }
  EXPECT_GT(n_refused, 30u);
}

TEST(Regex, ReadsClassesAndEscapes) {
  const auto accepts = [](const char* pattern, std::string_view text) {
    Made made(Grammar::regex, pattern);
    EXPECT_TRUE(made) << pattern << ": " << made.sentence();
    return made && made.accepts(text);
  };
  EXPECT_TRUE(accepts(R"(\d{3}-\d{4})", "555-0199"));
  EXPECT_TRUE(accepts(R"([\w.-]+)", "a_b.c-9"));
  EXPECT_FALSE(accepts(R"(\w)", "é"));
  EXPECT_TRUE(accepts(R"([^a-z])", "é"));
  EXPECT_TRUE(accepts(R"(é{2})", "éé"));
  EXPECT_TRUE(accepts(R"(.)", "\xF0\x9F\x98\x80"));
  EXPECT_FALSE(accepts(R"(.)", "\n"));
  EXPECT_TRUE(accepts(R"([\u4e00-\u9fff]+)", "中文"));
  EXPECT_TRUE(accepts(R"(\u{1F600}\x41\cJ\t)",
                      "\xF0\x9F\x98\x80"
                      "A\n\t"));
  EXPECT_TRUE(accepts(R"(\ud83d\ude00)", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(accepts(R"(\p{Lu}\p{Ll}+)", "Édith"));
  EXPECT_FALSE(accepts(R"(\p{L}+)", "a1"));
  EXPECT_TRUE(accepts(R"(\P{L})", "1"));
  EXPECT_TRUE(accepts(R"(a{,2})", "a{,2}"));
  EXPECT_TRUE(accepts(R"([a\]b]+)", "]a"));
  EXPECT_TRUE(accepts(R"(\s+)", " \t\xC2\xA0"));
}

TEST(Regex, RefusesByName) {
  const auto refusal = [](const std::string& pattern) {
    Made made(Grammar::regex, pattern);
    return made.sentence();
  };
  EXPECT_NE(refusal(R"((a)\1)").find("a reference to a group"), std::string::npos);
  EXPECT_NE(refusal(R"((?<=a)b)").find("a look behind"), std::string::npos);
  EXPECT_NE(refusal(R"(\bword\b)").find("a word boundary"), std::string::npos);
  EXPECT_NE(refusal("(a").find("has no ')'"), std::string::npos);
  EXPECT_NE(refusal("a)").find("has no '('"), std::string::npos);
  EXPECT_NE(refusal("[a").find("has no ']'"), std::string::npos);
  EXPECT_NE(refusal("*a").find("nothing before it"), std::string::npos);
  EXPECT_NE(refusal("a{3,2}").find("ends before it begins"), std::string::npos);
  EXPECT_NE(refusal("b|(?:c^a)*").find("an anchor or a look ahead inside of a repetition"), std::string::npos);
  EXPECT_NE(refusal("b|(?:c^a)*").find("at byte 6, which"), std::string::npos);
  EXPECT_NE(refusal("b|(?:(?=a)a){2}").find("at byte 5, which"), std::string::npos);
  EXPECT_NE(refusal("a*(?:b|^c)").find("at byte 7, which"), std::string::npos);
  EXPECT_NE(refusal("a(?<n>b)(?:c|(?<n>d))").find("at byte 13: a group has the name of another"), std::string::npos);
  EXPECT_EQ(refusal("(?<n>a)|b(?:(?<n>c)|(?<n>d))"), "");  // one match has one of them
  EXPECT_NE(refusal("a^").find("allows no text"), std::string::npos);
  EXPECT_FALSE(refusal(std::string(500, '(') + std::string(500, ')')).empty());
  EXPECT_FALSE(refusal("a{2000000}").empty());
}

}  // namespace
}  // namespace qsf::grammar
