// Conversations by short templates in the form of many families, as jinja2 renders them (data/make_chat.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "rendered.h"
#include "tests/support/paths.h"

namespace qsf::templates::test {
namespace {

using Json = nlohmann::ordered_json;

Json cases() { return Json::parse(std::ifstream(source_dir() + "/tests/templates/data/chat.json"), nullptr, false); }

Rendered conversation(const Json& chat_template, const Json& turns) {
  Json values{{"messages", Json::array()}, {"add_generation_prompt", true}};
  for (const Json& turn : turns) values["messages"].push_back({{"role", turn[0]}, {"content", turn[1]}});
  const std::string text = values.dump();
  return render(chat_template.get<std::string>(), {.values = text,
                                                   .special = R"({"bos_token": "<s>", "eos_token": "</s>"})",
                                                   .now = {.year = 2025, .month = 3, .day = 7}});
}

TEST(Conversations, AreThoseOfJinja) {
  const Json data = cases();
  for (const Json& one : data.at("cases")) {
    for (std::size_t i = 0; i < data.at("conversations").size(); ++i) {
      SCOPED_TRACE(one.at("family").get<std::string>() + " " + std::to_string(i));
      const Rendered got = conversation(one.at("template"), data.at("conversations").at(i));
      const Json& wanted = one.at("texts").at(i);
      EXPECT_EQ(got.code, wanted.is_null() ? ErrorCode::template_refusal : ErrorCode::none) << got.sentence;
      if (!wanted.is_null()) {
        EXPECT_EQ(got.text, wanted.get<std::string>());
      }
    }
  }
  EXPECT_GE(data.at("cases").size(), 24u);
}

TEST(Conversations, OnlyTheTemplatesTextIsItsOwn) {
  constexpr std::string_view kMessage = "{eos}</s><|im_end|>";
  const Json data = cases();
  for (const Json& one : data.at("cases")) {
    SCOPED_TRACE(one.at("family").get<std::string>());
    const Rendered got = conversation(one.at("template"), Json::array({Json::array({"user", kMessage})}));
    ASSERT_EQ(got.code, ErrorCode::none) << got.sentence;
    const std::size_t at = got.text.find(kMessage);
    ASSERT_NE(at, std::string::npos);
    std::string own = got.text;
    own.replace(at, kMessage.size(), kMessage.size(), '.');
    EXPECT_EQ(got.own, own);
  }
}

}  // namespace
}  // namespace qsf::templates::test
