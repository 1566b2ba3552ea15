// JSON as models have it: what Python's json writes beside the standard, and where a text is none.
#include "converter/files/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "converter/support.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using nlohmann::json;

using convert::Json;

Result<Json> parse(const std::string& text) { return convert::parse_json(text, "x.json"); }

std::string refusal(const std::string& text) {
  const Result<Json> json = parse(text);
  if (json) return "taken as " + convert::shown(*json);
  EXPECT_EQ(error_of(json).code, ErrorCode::bad_input);
  return json.error().sentence;
}

TEST(ModelJson, HasNumbersThatAreNotFinite) {
  const Result<Json> json = parse(R"({"a": [0.0, Infinity,-Infinity], "b":NaN, "c": "NaN", "d": [-1, -0.5]})");
  ASSERT_TRUE(json) << json.error().sentence;
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ((*json)["a"], Json({0.0, infinity, -infinity}));
  EXPECT_TRUE((*json)["b"].is_number_float() && std::isnan((*json)["b"].get<double>()));
  EXPECT_EQ((*json)["c"], "NaN");
  EXPECT_EQ((*json)["d"], Json({-1, -0.5}));
  EXPECT_TRUE(std::isinf(parse("Infinity")->get<double>()));
  // At the seam of two pieces that are read.
  for (std::size_t n = (64 << 10) - 12; n < (64 << 10) + 2; ++n) {
    const Result<Json> seam = parse("[" + std::string(n, ' ') + "-Infinity]");
    ASSERT_TRUE(seam) << n;
    EXPECT_EQ((*seam)[0], -infinity) << n;
  }
}

TEST(ModelJson, ShowsWholeNumbersWithoutAPoint) {
  EXPECT_EQ(convert::shown(0.0), "0");
  EXPECT_EQ(convert::shown(-3.0), "-3");
  EXPECT_EQ(convert::shown(4294967296.0), "4294967296");
  EXPECT_EQ(convert::shown(0.5), "0.5");
  EXPECT_EQ(convert::shown(1e300), "1e+300");
  EXPECT_EQ(convert::shown(7), "7");
}

TEST(ModelJson, HasNoWordsThatAreAlmostNumbers) {
  for (const char* text :
       {"[-NaN]", "[NaNN]", "[NaN5]", "[5NaN]", "[Infinit]", "[Infinity5]", "[+Infinity]", "[nan]", "[\"a\"NaN]",
        "[NaN\"a\"]", "{NaN: 1}", "{\"a\" NaN}", "[--1]", "[- 1]", "NaNNaN", "-", "I"}) {
    EXPECT_NE(refusal(text).find("x.json is not valid JSON: see line 1, column "), std::string::npos)
        << text << ": " << refusal(text);
  }
}

TEST(ModelJson, IsToldFromWhatIsNoneByLineAndColumn) {
  EXPECT_EQ(refusal("{\"a\": 1,\n  \"b\": 2]"), "x.json is not valid JSON: see line 2, column 9");
  EXPECT_EQ(refusal("{\"\xc3\xa4\": }"), "x.json is not valid JSON: see line 1, column 7") << "characters are counted";
  EXPECT_EQ(refusal("[1, 2]\n\n3"), "x.json is not valid JSON: see line 3, column 1");
  EXPECT_EQ(refusal("[1,\n2"), "x.json is not valid JSON: see line 2, column 1") << "where it ends";
  EXPECT_EQ(refusal(" "), "x.json is not valid JSON: see line 1, column 1");
  EXPECT_EQ(refusal(""), "x.json is empty, and not valid JSON");
}

TEST(ModelJson, HasEveryKeyOfAnObjectOnce) {
  EXPECT_EQ(refusal("{\"a\": 1,\n \"b\": {\"a\": 2},\n \"a\": 3}"),
            "x.json: the key \"a\" is there twice, again in line 3, column 4");
  EXPECT_TRUE(parse(R"([{"a": 1}, {"a": 2, "b": {"a": 3}}])"));
}

class Configuration : public testing::Test {
 protected:
  /// A copy of the fixture, of the same name, whose configuration has other characters in a place.
  std::string with(const std::string& fixture, const std::string& from, const std::string& to) {
    const std::string path = folder_.path(fixture);
    copy_folder(kSource + "/tests/data/" + fixture, path);
    const Bytes bytes = read_bytes(path + "/config.json");
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    write_text(path + "/config.json", text.replace(at, from.size(), to));
    return path;
  }
  std::string refusal_with(const std::string& fixture, const std::string& from, const std::string& to) {
    return convert_error(with(fixture, from, to)).sentence;
  }

  Folder folder_;
};

TEST_F(Configuration, MayHoldThemWhereNoNumberIsUsed) {
  const std::string path = with("granite-hybrid", "\"time_step_max\": 0.1", "\"time_step_max\": [0.0, Infinity, NaN]");
  EXPECT_EQ(convert(path, {}).file, convert(kSource + "/tests/data/granite-hybrid", {}).file);
}

TEST_F(Configuration, MaySayItsLimitsInTheWordsOfEitherTransformers) {
  for (const char* name : {"bamba", "falcon-h1", "granite-hybrid", "mamba2", "nemotron-h"}) {
    json config = read_config(kSource + "/tests/data/" + name);
    ASSERT_EQ(config.at("time_step_limit").dump(), R"([0.0,{"__float__":"Infinity"}])") << name;
    config["time_step_limit"] = "HERE";
    const std::string text = config.dump();
    for (const auto& [words, same] : {std::pair("[0.0, Infinity]", true), std::pair("[0.0, NaN]", false)}) {
      const std::string path = folder_.path(name);  // the name is in the file
      copy_folder(kSource + "/tests/data/" + name, path);
      const std::string here = "\"HERE\"";
      write_text(path + "/config.json", std::string(text).replace(text.find(here), here.size(), words));
      if (same) {
        EXPECT_EQ(convert(path, {}).file, convert(kSource + "/tests/data/" + name, {}).file) << name;
      } else {
        EXPECT_NE(std::string(convert_error(path).sentence).find("\"time_step_limit\" is not"), std::string::npos)
            << name;
      }
    }
  }
}

TEST_F(Configuration, IsRefusedWhereOneIsUsed) {
  EXPECT_EQ(refusal_with("llama", "\"rms_norm_eps\": 1e-06", "\"rms_norm_eps\": Infinity"),
            "config.json: \"rms_norm_eps\" must be a finite number, but is Infinity");
  EXPECT_EQ(refusal_with("granite-hybrid", "\"attention_multiplier\": 0.05", "\"attention_multiplier\": NaN"),
            "config.json: \"attention_multiplier\" is NaN; it must be a number from 0 to 1000000");
  EXPECT_EQ(refusal_with("llama", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": -Infinity"),
            "config.json: \"num_hidden_layers\" is -Infinity; it must be a whole number from 1 to 1024");
}

TEST_F(Configuration, HasEveryKeyOnce) {
  EXPECT_EQ(refusal_with("llama", "{", "{ \"hidden_size\": 64,"),
            "config.json: the key \"hidden_size\" is there twice, again in line 12, column 15");
}

}  // namespace
}  // namespace qsf::test
