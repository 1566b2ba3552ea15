#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/grammar/texts.h"
#include "tests/support/paths.h"

namespace qsf::grammar {
namespace {

TEST(Schema, AcceptsValidTextsAndRefusesOthers) {
  const Json cases = read_json(source_dir() + "/tests/grammar/schemas.json");
  ASSERT_GT(cases.size(), 20u);
  for (const Json& one : cases) {
    Made made(Grammar::json_schema, one["schema"].dump());
    ASSERT_TRUE(made) << one["schema"] << ": " << made.sentence();
    for (const Json& text : one["valid"]) {
      EXPECT_TRUE(made.accepts(text.get<std::string>())) << text << " by " << one["schema"];
    }
    for (const Json& text : one["invalid"]) {
      EXPECT_FALSE(made.accepts(text.get<std::string>())) << text << " by " << one["schema"];
    }
  }
}

/// What a case of the public test suite needs that is refused by name, with the reason.
const std::set<std::string> kRefused{"unevaluatedProperties",
                                     "unevaluatedItems",
                                     "uniqueItems",
                                     "$dynamicRef",
                                     "idn-email",
                                     "idn-hostname",
                                     "iri",
                                     "iri-reference",
                                     "uri-template",
                                     "regex",
                                     "another document",
                                     "a part that the schema does not have"};

/// Writes numbers as they are in the suite: without an exponent.
std::string text_of(const Json& value) {
  std::string text = value.dump();
  if (text == "9.007199254740992e+15") text = "9007199254740992.0";
  return text;
}

TEST(SharedSchemas, AgreeWithThePublicTestSuite) {
  const std::string path = source_dir() + "/../shared/data/json-schema/draft2020-12.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  std::size_t schemas = 0, instances = 0;
  std::map<std::string, std::size_t> refused;
  for (const Json& one : read_json(path)) {
    // The cases of "format" alone want a format to be a remark; here it is held.
    if (one["keyword"] == "format") continue;
    Made made(Grammar::json_schema, one["schema"].dump());
    if (!made) {
      const std::string why = made.sentence();
      if (why == "the schema allows no value") {
        for (const Json& test : one["tests"]) EXPECT_FALSE(test["valid"].get<bool>()) << one["schema"];
        continue;
      }
      bool named = false;
      for (const std::string& word : kRefused) {
        if (why.find(word) == std::string::npos) continue;
        named = true;
        ++refused[word];
        break;
      }
      EXPECT_TRUE(named) << one["schema"] << ": " << why;
      continue;
    }
    ++schemas;
    for (const Json& test : one["tests"]) {
      // Names of hosts in other scripts are not held.
      if (one["keyword"] == "format/hostname" && test["data"].dump().find("xn--") != std::string::npos) continue;
      EXPECT_EQ(made.accepts(text_of(test["data"])), test["valid"].get<bool>())
          << one["keyword"] << ": " << test["data"] << " by " << one["schema"];
      ++instances;
    }
  }
  EXPECT_GT(schemas, 200u);
  EXPECT_GT(instances, 800u);
  EXPECT_LT(refused["another document"], 10u);
}

TEST(Schema, NumbersThatAreGeneratedHaveNoZerosAtTheirEnd) {
  const auto generated = +[](std::string_view schema, std::span<std::byte> memory) {
    return Grammar::json_schema(schema, memory, Integers::without_point);
  };
  const std::string schema = R"({"items": {"anyOf": [{"type": "integer"}, {"enum": [1.50, 0, -0.25, 1e2]}]}})";
  Made shortest(generated, schema), any(Grammar::json_schema, schema);
  for (const char* text : {"[1.5]", "[0]", "[-0]", "[-0.25]", "[100]", "[7]"})
    EXPECT_TRUE(shortest.accepts(text)) << text;
  for (const char* text : {"[1.50]", "[0.0]", "[-0.250]", "[100.0]", "[7.0]"}) {
    EXPECT_FALSE(shortest.accepts(text)) << text;
    EXPECT_TRUE(any.accepts(text)) << text;
  }
}

TEST(Schema, RefusesByTheKeywordsName) {
  const auto refusal = [](const std::string& schema) {
    Made made(Grammar::json_schema, schema);
    return made.sentence();
  };
  for (const char* keyword : {"$dynamicRef", "unevaluatedProperties", "unevaluatedItems", "uniqueItems"}) {
    const std::string value = std::string(keyword) == "uniqueItems" ? "true" : "false";
    const std::string sentence = refusal("{\"items\": {\"" + std::string(keyword) + "\": " + value + "}}");
    EXPECT_NE(sentence.find("'" + std::string(keyword) + "'"), std::string::npos) << sentence;
  }
  EXPECT_EQ(refusal(R"({"uniqueItems": false})"), "");
  EXPECT_NE(refusal(R"({"$schema": 5})").find("'$schema'"), std::string::npos);
  EXPECT_NE(refusal(R"({"$ref": "other.json"})").find("'$ref'"), std::string::npos);
  EXPECT_NE(refusal(R"({"$ref": "#"})").find("leads back to itself"), std::string::npos);
  EXPECT_NE(refusal(R"({"format": "regex"})").find("'format'"), std::string::npos);
  EXPECT_NE(refusal(R"({"pattern": "(a)\\1"})").find("'pattern'"), std::string::npos);
  EXPECT_NE(refusal(R"({"type": "text"})").find("'type'"), std::string::npos);
  EXPECT_NE(refusal(R"({"minLength": -1})").find("'minLength'"), std::string::npos);
  EXPECT_NE(refusal(R"({"required": true})").find("'required'"), std::string::npos);
  EXPECT_NE(refusal(R"({"anyOf": []})").find("'anyOf'"), std::string::npos);
  EXPECT_NE(refusal(R"({"type": "string", "enum": []})").find("no value"), std::string::npos);
  EXPECT_NE(refusal(R"({"a": 1, "a": 2})").find("twice"), std::string::npos);
  EXPECT_NE(refusal("[1").find("JSON"), std::string::npos);
  EXPECT_NE(refusal("3").find("a schema must be"), std::string::npos);
}

TEST(Schema, RefusesTextsAsSoonAsNothingCanSaveThem) {
  const auto reaches = [](const char* schema, std::string_view text) {
    Made made(Grammar::json_schema, schema);
    EXPECT_TRUE(made) << schema << ": " << made.sentence();
    std::size_t n = 0;
    while (made && n < text.size() && *made->accept(text.substr(n, 1))) ++n;
    return n;
  };
  EXPECT_EQ(reaches(R"({"type": "integer", "minimum": 10, "maximum": 20})", "31"), 0u);
  EXPECT_EQ(reaches(R"({"type": "integer", "minimum": 10, "maximum": 20})", "21"), 1u);
  EXPECT_EQ(reaches(R"({"type": "integer", "multipleOf": 10, "maximum": 20, "minimum": 10})", "15"), 1u);
  EXPECT_EQ(reaches(R"({"additionalProperties": false, "properties": {"abc": {}, "abd": {}}})", R"({"abx)"), 4u);
  EXPECT_EQ(reaches(R"({"additionalProperties": false, "properties": {"a": {}}})", R"({"a":1,)"), 6u);
  EXPECT_EQ(reaches(R"({"maxItems": 1})", "[1,"), 2u);
  EXPECT_EQ(reaches(R"({"items": false})", "[1"), 1u);
  EXPECT_EQ(reaches(R"({"required": ["a", "b"], "maxProperties": 2})", R"({"c")"), 2u);
  EXPECT_EQ(reaches(R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})", R"({"a":1,"b":)"), 9u);
  EXPECT_EQ(reaches(R"({"anyOf": [{"properties": {"a": {"const": "x"}, "b": {"type": "null"}}, "required": ["a"]},
                                  {"properties": {"a": {"const": "y"}, "b": {"type": "array"}}, "required": ["a"]}]})",
                    R"({"a":"y","b":n)"),
            13u);
  EXPECT_EQ(reaches(R"({"allOf": [{"pattern": "^a+$"}, {"pattern": "^a*b*$"}]})", "\"aab"), 3u);
  const char* condition = R"({"properties": {"unit": {"enum": ["C", "F"]}, "n": {"type": "integer", "maximum": 150}},
      "if": {"properties": {"unit": {"const": "C"}}}, "then": {"properties": {"n": {"maximum": 60}}}})";
  EXPECT_EQ(reaches(condition, R"({"unit":"F","n":65})"), 19u);
  EXPECT_EQ(reaches(condition, R"({"unit":"C","n":65})"), 17u) << "the condition is true before the object ends";
  EXPECT_EQ(reaches(condition, R"({"n":65,"unit":"C"})"), 16u) << "no name that goes on so is possible";
  EXPECT_EQ(reaches(R"({"maximum": 150, "not": {"maximum": 90}})", "55"), 0u) << "no number that goes on so is both";
  EXPECT_EQ(reaches(R"({"enum": ["C", "CD", 1], "not": {"const": "CD"}})", "\"CD"), 2u);
  EXPECT_EQ(reaches(R"({"enum": ["ä", "b"], "not": {"const": "ä"}})", "\"\xC3\xA4"), 1u);
  EXPECT_EQ(reaches(R"({"not": {"prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2}})", "[1,2,"), 4u);
  EXPECT_EQ(reaches(R"({"patternProperties": {"^a": {"type": "string"}, "^.b": {"type": "integer"}}})", R"({"ab":1})"),
            3u)
      << "no value is both";
  EXPECT_EQ(reaches(R"({"allOf": [{"prefixItems": [{}], "items": {"type": "string"}},
                                  {"prefixItems": [{}], "items": {"type": "integer"}}]})",
                    "[1,2]"),
            2u);
  const char* few = R"({"patternProperties": {"^[ab]$": true}, "additionalProperties": false, "minProperties": 1})";
  EXPECT_EQ(reaches(few, R"({"a":1,"a":1})"), 8u) << "the object has the only name that begins so";
  EXPECT_EQ(reaches(few, R"({"b":1,"a":1,"c":1})"), 12u) << "no name is left";
  EXPECT_EQ(reaches("true", std::string(1000, '[')), 128u);
  EXPECT_EQ(reaches("true", std::string(1000, ' ')), 256u);
}

TEST(Schema, StopsHostileSchemas) {
  // Returns the error of the schema or of the text under it; steps of bytes and searches are few in both.
  const auto ended = [](const std::string& schema, std::string_view text, std::uint64_t most_steps) -> std::string {
    Made made(Grammar::json_schema, schema);
    if (!made) return made.sentence();
    const Result<bool> follows = made->accept(text);
    EXPECT_LE(made->steps(), most_steps) << schema.substr(0, 80);
    return follows ? *follows ? "follows" : "does not follow" : follows.error().sentence;
  };
  constexpr std::string_view kMemory = "bytes of memory that it may use";
  // It takes a million.
  EXPECT_TRUE(ended(R"({"pattern": "^((a{1,1000}b?){1,1000}c?){1,1000}$"})", "\"" + std::string(2000, 'a'), 2'000'000)
                  .ends_with(kMemory));
  std::string nested = "true";
  for (int i = 0; i < 60; ++i) nested = R"({"anyOf": [)" + nested + R"(, {"type": "null"}]})";
  EXPECT_EQ(ended(nested, "[1]", 100), "follows");
  std::string wide = R"({"type": "object", "properties": {)";
  for (int i = 0; i < 20000; ++i) wide += "\"k" + std::to_string(i) + "\": {\"type\": \"integer\"},";
  wide.back() = '}';
  const std::string of_wide = ended(wide + ", \"additionalProperties\": false}", R"({"k1": 1, "k19999": 2, )", 100);
  EXPECT_TRUE(of_wide == "follows" || of_wide.ends_with(kMemory)) << of_wide;  // small addresses leave more memory
  // Each reference doubles the conditions at one place.
  std::string doubled = R"({"$defs": {"d0": {"type": "null"})";
  for (int i = 1; i < 40; ++i) {
    const std::string before = std::to_string(i - 1);
    doubled += ", \"d" + std::to_string(i) + R"(": {"allOf": [{"$ref": "#/$defs/d)" + before +
               R"("}, {"$ref": "#/$defs/d)" + before + "\"}]}";
  }
  EXPECT_EQ(ended(doubled + R"(}, "$ref": "#/$defs/d39"})", "null", 100), "follows");
  std::string choices = R"({"oneOf": [)";
  for (int i = 0; i < 3000; ++i) choices += R"({"properties": {"a": {"const": )" + std::to_string(i) + "}}},";
  choices.back() = ']';
  EXPECT_NE(ended(choices + "}", R"({"a": 17})", 100).find("more conditions at one place"), std::string::npos);
}

TEST(Schema, EndsWithoutMemoryInASentence) {
  std::string schema = R"({"type": "object", "required": ["k1"], "properties": {)";
  for (int i = 0; i < 300; ++i) {
    const std::string n = std::to_string(i);
    schema += "\"k" + n + R"(": {"anyOf": [{"pattern": "^[a-z]+)" + n +
              R"($"}, {"type": "array", "contains": {"const": )" + n + "}}]},";
  }
  schema.back() = '}';
  schema += "}";
  std::string text = "[{";
  for (int i = 0; i < 300; ++i) text += "\"k" + std::to_string(i) + "\": [" + std::to_string(i) + "], ";
  std::size_t refused = 0, ended = 0;
  for (std::size_t memory = Grammar::kLeastMemory; memory < Grammar::kMemory / 2; memory += 150'000) {
    Made made(Grammar::json_schema, R"({"items": )" + schema + "}", memory);
    if (!made) {
      EXPECT_EQ(made.error().code, ErrorCode::out_of_memory) << made.sentence();
      ++refused;
      continue;
    }
    const Result<bool> follows = made->accept(text);
    if (follows) continue;
    EXPECT_EQ(follows.error().code, ErrorCode::out_of_memory) << follows.error().sentence;
    ++ended;
  }
  EXPECT_GT(refused + ended, 0u);
}

}  // namespace
}  // namespace qsf::grammar
