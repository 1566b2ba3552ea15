// Renderings compared with those of jinja2.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "rendered.h"
#include "templates/library.h"
#include "tests/support/paths.h"

namespace qsf::templates::test {
namespace {

using Json = nlohmann::ordered_json;

Time time_of(const std::string& iso) {
  Time time;
  (void)std::sscanf(iso.c_str(), "%d-%u-%uT%u:%u:%u", &time.year, &time.month, &time.day, &time.hour, &time.minute,
                    &time.second);
  return time;
}

/// Expects the outcome of jinja2: a text, a refusal, or that it stops.
void expect_same(const Rendered& got, const Json& wanted) {
  if (wanted.contains("text")) {
    EXPECT_EQ(got.code, ErrorCode::none) << got.sentence;
    EXPECT_EQ(got.text, wanted["text"].get<std::string>());
  } else if (wanted.contains("refuses")) {
    EXPECT_EQ(got.code, ErrorCode::template_refusal) << got.sentence;
    EXPECT_EQ(got.refusal, wanted["refuses"].get<std::string>());
  } else {
    EXPECT_EQ(got.code, ErrorCode::bad_template) << got.text;
    EXPECT_TRUE(got.sentence.starts_with("line ")) << got.sentence;
  }
}

TEST(Jinja, EveryPartAsJinja2RendersIt) {
  const Json data = Json::parse(std::ifstream(source_dir() + "/tests/templates/data/cases.json"));
  const std::string values = data["variables"].dump(), special = data["special"].dump();
  for (const Json& one : data["cases"]) {
    SCOPED_TRACE(one["name"].get<std::string>());
    expect_same(render(one["template"].get<std::string>(), {values, special, time_of(data["now"])}), one);
  }
  EXPECT_GT(data["cases"].size(), 270u);
}

/// Whether a template has a name, and something else around it.
bool has_name(std::string_view text, std::string_view name) {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  const bool is_word = std::isalpha(static_cast<unsigned char>(name.front())) != 0;
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (!is_word || (!is_part(at - 1) && !is_part(at + name.size()))) return true;
  }
  return false;
}

// So that each is compared with jinja2 where no template of a model is.
TEST(Jinja, EveryNameOfTheTablesIsInACase) {
  const Json data = Json::parse(std::ifstream(source_dir() + "/tests/templates/data/cases.json"));
  std::string all;
  for (const Json& one : data["cases"]) all += one["template"].get<std::string>() + "\n";
  std::size_t n = 0;
  for (const std::span<const Row> table :
       {text_filters(), method_filters(), list_filters(), templates::tests(), functions(), text_methods(),
        list_methods(), dict_methods(), loop_methods(), cycler_methods()}) {
    for (const Row& row : table) {
      EXPECT_TRUE(has_name(all, row.name)) << row.name;
      ++n;
    }
  }
  EXPECT_GT(n, 120u);
}

TEST(Jinja, TemplatesOfModelsWhereTheyAreThere) {
  const std::string path = source_dir() + "/../shared/data/templates/templates.json";
  if (!std::filesystem::exists(path)) return;
  const Json data = Json::parse(std::ifstream(path));
  const std::string special = data["special"].dump();
  int n_texts = 0, n_refusals = 0;
  for (const Json& model : data["templates"]) {
    for (const auto& [name, wanted] : model["renderings"].items()) {
      SCOPED_TRACE(model["name"].get<std::string>() + ", " + name);
      Json values = data["conversations"][name];
      if (!values.contains("add_generation_prompt")) values["add_generation_prompt"] = true;
      const Rendered got = render(model["template"].get<std::string>(), {values.dump(), special, time_of(data["now"])});
      expect_same(got, wanted);
      n_texts += wanted.contains("text") ? 1 : 0;
      n_refusals += wanted.contains("refuses") ? 1 : 0;
      EXPECT_LT(got.used_bytes, kUsualMemory / 100);
    }
  }
  EXPECT_GE(n_texts, 712);
  EXPECT_GE(n_refusals, 16);
}

}  // namespace
}  // namespace qsf::templates::test
