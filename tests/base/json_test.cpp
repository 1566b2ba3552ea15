#include "qsf/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace qsf::json {
namespace {

class Read {
 public:
  explicit Read(std::string text, std::size_t memory = 1u << 20)
      : text_(std::move(text)), memory_(memory), store_(memory_), document_(Document::read(text_, store_)) {}
  explicit operator bool() const { return static_cast<bool>(document_); }
  const Document& operator*() const { return *document_; }
  const Error& error() const { return document_.error(); }

 private:
  std::string text_;
  std::vector<std::byte> memory_;
  Store store_;
  Result<Document> document_;
};

/// Writes a value again, so that another reader can compare it.
nlohmann::json again(const Document& d, std::uint32_t id) {
  const Value& v = d[id];
  switch (v.kind) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return v.truth;
    case Kind::number:
      return nlohmann::json::parse(v.text);
    case Kind::string:
      return std::string(v.text);
    case Kind::array: {
      nlohmann::json out = nlohmann::json::array();
      for (std::uint32_t i = v.first; i != 0; i = d[i].next) out.push_back(again(d, i));
      return out;
    }
    case Kind::object: {
      nlohmann::json out = nlohmann::json::object();
      for (std::uint32_t i = v.first; i != 0; i = d[i].next) out[std::string(d[i].name)] = again(d, i);
      return out;
    }
  }
  return {};
}

TEST(Json, ReadsWhatAnotherReaderReads) {
  for (const char* text :
       {"null", " [ ] ", "{}", "[1,-0,2.5e-3,[true,false],{\"a\":{\"b\":[null]}}]", R"("\u0041\n\ud83d\ude00\/\"é")",
        R"({"a":1,"b":{"a":2},"":3})", "\"\"", "-1.0E+10", "[[[[[[]]]]]]"}) {
    const Read read(text);
    ASSERT_TRUE(read) << text << ": " << read.error().sentence;
    EXPECT_EQ(again(*read, Document::kRoot), nlohmann::json::parse(text)) << text;
  }
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"",      "nul", "[1,]",      "{\"a\":1,}", "{a:1}",     "01",          "1.",          ".5",
                           "1e",    "+1",  "\"\x01\"",  "\"\\x\"",    "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"a",
                           "[1 2]", "1 2", "{\"a\" 1}", "\"\xff\"",   "NaN"}) {
    const Read read(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::bad_input) << text;
    EXPECT_FALSE(nlohmann::json::accept(text)) << text;
  }
  EXPECT_FALSE(Read(R"({"a":1,"b":2,"a":3})"));
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"k" + std::to_string(i % 99) + "\":0,";
  EXPECT_FALSE(Read(many.substr(0, many.size() - 1) + "}"));
  EXPECT_FALSE(Read(std::string(200, '[') + std::string(200, ']')));
  const Read full("[" + std::string(20000, '0') + "]", 1000);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::out_of_memory);
}

TEST(Json, ComparesNumbersByTheirValues) {
  const auto same = [](const char* a, const char* b) {
    const auto x = Number::read(a), y = Number::read(b);
    return x && y && *x == *y;
  };
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("100", "1e2"));
  EXPECT_TRUE(same("0.001", "1E-3"));
  EXPECT_TRUE(same("-0.0", "0"));
  EXPECT_TRUE(same("0e500", "0"));
  EXPECT_FALSE(same("1", "-1"));
  EXPECT_FALSE(same("1", "10"));
  EXPECT_FALSE(same("1.5", "15"));
  EXPECT_FALSE(Number::read("1e401"));
  EXPECT_TRUE(Number::read("1e3")->is_integer());
  EXPECT_FALSE(Number::read("1.5")->is_integer());
  const Read both(R"([{"a":[1,2.0],"b":"x"},{"b":"x","a":[1.0,2]},{"a":[1,2],"b":"y"}])");
  const std::uint32_t first = (*both)[Document::kRoot].first, second = (*both)[first].next;
  EXPECT_TRUE(equal(*both, first, second));
  EXPECT_FALSE(equal(*both, first, (*both)[second].next));
}

}  // namespace
}  // namespace qsf::json
