#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/grammar/texts.h"

namespace qsf::grammar {
namespace {

/// A vocabulary with all bytes, pieces of JSON and of words, parts of characters, twins and empty tokens.
std::vector<std::string> vocabulary() {
  std::vector<std::string> tokens{"", ""};
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string> pieces{"{",    "}",   "[",  "]",  ":",    ",",    "\"",       " ",        "\n",
                                        "\\",   "\\u", "00", "e9", "d83d", "name", "na",       "me",       "true",
                                        "null", "12",  "5",  "-",  ".",    "é",    "\xF0\x9F", "\x98\x80", "ab"};
  for (const std::string& a : pieces) {
    tokens.push_back(a);
    for (const std::string& b : pieces) {
      tokens.push_back(a + b);
      if (a.size() + b.size() < 4) {
        for (const std::string& c : pieces) tokens.push_back(a + b + c);
      }
    }
  }
  tokens.emplace_back(300, 'x');  // too long for a trie
  tokens.emplace_back(40, ' ');
  return tokens;
}

class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> tokens)
      : tokens(std::move(tokens)),
        views(this->tokens.begin(), this->tokens.end()),
        memory(TokenTrie::memory_for(views)),
        trie(TokenTrie::build(views, memory)) {}

  std::vector<std::string> tokens;
  std::vector<std::string_view> views;
  std::vector<std::byte> memory;
  Result<TokenTrie> trie;
};

Vocabulary& shared_vocabulary() {
  static Vocabulary one(vocabulary());
  return one;
}

/// Compares the mask with each token tried by itself.
void compare(Made& made, const Vocabulary& v, std::string_view prefix, const std::string& what) {
  made->reset();
  ASSERT_TRUE(*made->accept(prefix)) << what << " after " << prefix;
  std::vector<std::uint64_t> bits(mask_words(v.tokens.size()));
  const Status masked = made->mask(*v.trie, bits);
  ASSERT_TRUE(masked) << masked.error().sentence;
  for (std::size_t t = 0; t < v.tokens.size(); ++t) {
    bool allowed = false;
    if (!v.tokens[t].empty() && v.tokens[t].size() <= TokenTrie::kMaxToken) {
      made->reset();
      ASSERT_TRUE(*made->accept(prefix));
      allowed = *made->accept(v.tokens[t]);
    }
    ASSERT_EQ((bits[t / 64] >> t % 64 & 1) != 0, allowed)
        << what << " after '" << prefix << "', token " << t << " '" << v.tokens[t] << "'";
  }
}

TEST(TokenTrie, HasEachTokenOnce) {
  const Vocabulary& v = shared_vocabulary();
  ASSERT_TRUE(v.trie) << v.trie.error().sentence;
  std::set<std::uint32_t> found;
  std::string path;
  std::vector<std::size_t> ends;
  const auto nodes = v.trie->nodes();
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    while (!ends.empty() && ends.back() == i) {
      ends.pop_back();
      path.pop_back();
    }
    path += static_cast<char>(nodes[i].byte);
    ends.push_back(i + nodes[i].size);
    if (nodes[i].token == TokenTrie::kNoToken) continue;
    EXPECT_EQ(v.tokens[nodes[i].token], path);
    EXPECT_TRUE(found.insert(nodes[i].token).second);
  }
  for (const TokenTrie::Twin& twin : v.trie->twins()) {
    EXPECT_EQ(v.tokens[twin.token], v.tokens[twin.other]);
    EXPECT_TRUE(found.insert(twin.other).second);
  }
  std::size_t used = 0;
  for (const std::string& token : v.tokens) used += !token.empty() && token.size() <= TokenTrie::kMaxToken ? 1 : 0;
  EXPECT_EQ(found.size(), used);
}

TEST(TokenTrie, StatesTheMemoryThatItNeeds) {
  const Vocabulary& v = shared_vocabulary();
  std::vector<std::byte> memory(TokenTrie::memory_for(v.views) / 16);
  const Result<TokenTrie> small = TokenTrie::build(v.views, memory);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, ErrorCode::out_of_memory);
  const Result<TokenTrie> none = TokenTrie::build({}, v.memory.empty() ? std::span<std::byte>() : std::span(memory));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->nodes().empty());
}

TEST(Mask, EqualsEveryTokenTriedOfASchema) {
  struct Case {
    const char* schema;
    std::vector<const char*> prefixes;
  };
  const Case cases[] = {
      {"true",
       {"", "{", "[", "{\"", "{\"na", "[1", "[1.", "\"a\\", "\"\\u", "\"\\u00", "\"\\ud83d", "\"\xF0\x9F", "[\"",
        "{\"a\": \"b\"", "tr", "[{\"a\":"}},
      {R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}, "me": {"minimum": 5, "maximum": 25}}, "required": ["name"], "additionalProperties": false})",
       {"", "{", "{\"", "{\"na", "{\"name\"", "{\"name\": \"", "{\"name\": \"a", "{\"name\": \"ab\\u00e9",
        "{\"me\": ", "{\"me\": 1", "{\"me\": 25", "{\"name\": \"\"", "{\"me\":5,"}},
      {R"({"type": "array", "items": {"anyOf": [{"const": "name"}, {"type": "integer", "multipleOf": 5}, {"type": "string", "pattern": "^(ab)+$"}]}, "maxItems": 2})",
       {"[", "[\"", "[\"a", "[\"na", "[1", "[12", "[5,", "[5, \"ab\""}},
      {R"({"not": {"enum": ["name", 12, null]}})", {"", "\"name", "12", "tru", "\"n"}},
      {R"({"type": "object", "patternProperties": {"^n": {"type": "null"}}, "propertyNames": {"maxLength": 4}, "minProperties": 1})",
       {"{", "{\"", "{\"n", "{\"ab", "{\"name", "{\"name\":", "{\"12\": 1,"}},
      {R"({"allOf": [{"maxLength": 2}, {"anyOf": [{"minLength": 1}, {"type": "null"}]}]})", {"", "\"", "\"a", "\"a\\"}},
      // A part that may occur anywhere: any text may go on to have it.
      {R"({"type": "string", "pattern": "[a-z]{3}"})", {"", "\"", "\"12", "\"na", "\"name", "\"\\"}},
      {R"({"type": "string", "pattern": "^[a-z]{3}$"})", {"\"", "\"na", "\"\\"}},
      {R"({"allOf": [{"pattern": "ab$"}, {"pattern": "me"}, {"maxLength": 5}]})", {"\"", "\"me", "\"name", "\"meab"}},
      {R"({"type": "object", "patternProperties": {"ab": {}}, "additionalProperties": false, "minProperties": 2})",
       {"{\"", "{\"ab\": 1, \"", "{\"ab\": 1, \"ab", "{\"ab\": 1, \"na\\"}},
      {R"({"type": "object", "patternProperties": {"[ab]*": {}, "m$": {"type": "null"}}, "required": ["name"], "additionalProperties": false})",
       {"{\"", "{\"na", "{\"name\": null, \"n", "{\"name\\"}},
      // Names by patterns alone, in a cached mask; by patterns next to others, together and in conflict.
      {R"({"type": "object", "patternProperties": {"^[a-zé]{2,5}$": {}, "^n": {"type": "null"}}, "additionalProperties": false})",
       {"{\"", "{\"n", "{\"na", "{\"name", "{\"ab\": 1, \"", "{\"\\", "{\"a\\u00", "{\"a\xC3"}},
      {R"({"type": "object", "patternProperties": {"a": {}, "b": {}, "m": {}, "e": {}, "n": {"type": ["null", "array"]}}})",
       {"{\"", "{\"na", "{\"na\":", "{\"me\\"}},
      {R"({"type": "object", "patternProperties": {"^n": {"type": "string"}, "a": {"type": "null"}}})",
       {"{\"", "{\"n", "{\"ab\":", "{\"n\\u00"}},
      {R"({"oneOf": [{"type": "object", "patternProperties": {"^n": {"type": "null"}, "b$": {"type": "null"}}, "additionalProperties": false}, {"required": ["name", "é"]}]})",
       {"{\"", "{\"n", "{\"12", "{\"name\": 12, \"", "{\"\\u00"}},
  };
  for (const Case& one : cases) {
    Made made(Grammar::json_schema, one.schema);
    ASSERT_TRUE(made) << one.schema << ": " << made.sentence();
    for (const char* prefix : one.prefixes) compare(made, shared_vocabulary(), prefix, one.schema);
  }
}

TEST(Mask, EqualsEveryTokenTriedOfAGrammar) {
  Made json(Grammar::gbnf, R"(root ::= value
value ::= "{" (pair ("," pair)*)? "}" | "[" (value ("," value)*)? "]" | string | [0-9]+ | "null"
pair ::= string ":" " "? value
string ::= "\"" ([^"\\] | "\\" ["\\n])* "\"")");
  ASSERT_TRUE(json) << json.sentence();
  for (const char* prefix : {"", "{", "{\"a", "{\"a\":", "[1", "[[null", "\"\xF0\x9F", "\"\\"}) {
    compare(json, shared_vocabulary(), prefix, "gbnf");
  }
  Made regex(Grammar::regex, R"((?!12)(na?me|[0-9]{2,4}|(ab|é)*)-?)");
  ASSERT_TRUE(regex) << regex.sentence();
  for (const char* prefix : {"", "n", "1", "5", "ab", "\xC3"}) compare(regex, shared_vocabulary(), prefix, "regex");
}

TEST(Mask, LeadsToTextsThatAreAccepted) {
  const char* schemas[] = {
      R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}, "tags": {"type": "array",
          "items": {"enum": ["ab", "name", null]}, "minItems": 1, "maxItems": 3}, "n": {"type": "integer", "minimum": 10,
          "maximum": 99}}, "required": ["tags", "n"], "additionalProperties": false, "maxProperties": 3})",
      R"({"type": "object", "properties": {"a": {"enum": ["ab", "me"]}, "n": {"type": "integer", "minimum": -50,
          "maximum": 150}}, "required": ["a", "n"], "additionalProperties": false,
          "if": {"properties": {"a": {"const": "ab"}}}, "then": {"properties": {"n": {"maximum": 60}}},
          "else": {"properties": {"n": {"exclusiveMinimum": 90}}}})",
      R"({"type": "object", "properties": {"a": {"enum": ["ab", "me", "name"]}, "me": {"enum": ["ab", "me", "name"]}},
          "required": ["a", "me"], "additionalProperties": false, "oneOf": [{"properties": {"a": {"const": "ab"}}},
          {"properties": {"me": {"const": "ab"}}}], "not": {"properties": {"a": {"const": "name"}}}})",
      R"({"type": "array", "items": {"enum": [1, 2, "ab"]}, "minItems": 2, "maxItems": 2,
          "not": {"prefixItems": [{"const": 1}, {"const": "ab"}]}})"};
  const Vocabulary& v = shared_vocabulary();
  std::vector<std::uint64_t> bits(mask_words(v.tokens.size()));
  for (std::uint32_t seed = 0; seed < 40 * std::size(schemas); ++seed) {
    Made made(Grammar::json_schema, schemas[seed / 40]);
    ASSERT_TRUE(made) << made.sentence();
    std::uint64_t random = seed;
    std::string text;
    for (int i = 0; i < 400; ++i) {
      ASSERT_TRUE(made->mask(*v.trie, bits));
      std::vector<std::size_t> allowed;
      for (std::size_t t = 0; t < v.tokens.size(); ++t) {
        // White space is possible nearly everywhere; a text of it would have no end.
        const bool white = v.tokens[t].find_first_not_of(" \t\r\n") == std::string::npos;
        if ((bits[t / 64] >> t % 64 & 1) != 0 && !white) allowed.push_back(t);
      }
      if (allowed.empty()) break;
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::string& token = v.tokens[allowed[(random >> 33) % allowed.size()]];
      ASSERT_TRUE(*made->accept(token)) << text << " | " << token;
      text += token;
    }
    EXPECT_TRUE(made->can_end()) << text;
    EXPECT_TRUE(made.accepts(text)) << text;
  }
}

TEST(Mask, FollowsLongTextsInItsMemory) {
  Made made(Grammar::json_schema, R"({"items": {"type": "object", "required": ["a"], "minProperties": 1}})");
  ASSERT_TRUE(made) << made.sentence();
  ASSERT_TRUE(*made->accept("["));
  for (int i = 0; i < 30000; ++i) ASSERT_TRUE(*made->accept(R"({"b": {"c": [1]}, "a": 1}, )")) << i;
  ASSERT_TRUE(*made->accept(R"({"a": 1}])"));
  EXPECT_TRUE(made->can_end());
  EXPECT_LT(made->used(), Grammar::kMemory / 2);
}

}  // namespace
}  // namespace qsf::grammar
