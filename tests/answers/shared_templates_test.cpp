// Chat templates that models carry, if they are there (../shared/data/templates). Each writes an earlier call in its
// own syntax, so the text after a question is an answer that must be read as that call.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "answers/read.h"
#include "tests/support/paths.h"

namespace qsf::answers::test {
namespace {

using Json = nlohmann::json;

TEST(SharedTemplates, SelectTheSyntaxOfTheirCalls) {
  std::ifstream file(source_dir() + "/../shared/data/templates/templates.json");
  if (!file) return;  // its own small templates are in families_test
  const Json data = Json::parse(file, nullptr, false);
  constexpr std::string_view kQuestion = "Weather in Zürich?", kResult = R"({"sky)";
  const OwnTools own;
  int read = 0;
  for (const Json& one : data.at("templates")) {
    const Json& renderings = one.at("renderings");
    if (!renderings.at("tool_call").contains("text") || !renderings.at("tools").contains("text")) continue;
    const std::string whole = renderings["tool_call"]["text"], asked = renderings["tools"]["text"];
    const std::size_t question = whole.rfind(kQuestion), before = asked.rfind(kQuestion);
    if (question == whole.npos || before == asked.npos) continue;
    // The end of the prompt, as far as the conversation with the answer has it too.
    const std::string_view prompt = std::string_view(asked).substr(before + kQuestion.size());
    std::string_view answer = std::string_view(whole).substr(question + kQuestion.size());
    std::size_t same = static_cast<std::size_t>(std::ranges::mismatch(answer, prompt).in1 - answer.begin());
    while (same > 0 && std::string_view("\n>]").find(answer[same - 1]) == answer.npos) --same;  // no half of a mark
    answer.remove_prefix(same);
    answer = answer.substr(0, answer.find(kResult));
    if (answer.find("Zürich") == answer.npos) continue;  // a template that leaves calls out
    SCOPED_TRACE(one.at("name").get<std::string>());
    const std::string chat_template = one.at("template");
    for (const bool tokens : {false, true}) {
      Reading reading(marks_of(chat_template, tokens), own.tools,
                      std::string_view(asked).substr(before + kQuestion.size(), same));
      if (tokens) {
        reading.with_tokens(answer, 0);
      } else {
        reading.text(answer);
      }
      std::vector<Said> calls = reading.end();
      std::erase_if(calls, [](const Said& said) { return said.kind != AnswerPart::call; });
      // Kimi's ids have the names of tools, so its template writes the id only.
      const bool by_id = chat_template.find("<|tool_call_argument_begin|>") != std::string::npos;
      EXPECT_EQ(calls, std::vector<Said>{call(by_id ? "call00001" : "get_weather", R"({"city":"Zürich","days":2})")})
          << answer;
    }
    ++read;
  }
  EXPECT_GE(read, 18);
}

}  // namespace
}  // namespace qsf::answers::test
