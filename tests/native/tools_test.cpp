// Answers with thoughts and calls as qsf-run shows them. A regular expression makes the tiny model write them.
#include <gtest/gtest.h>

#include <regex>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

const std::string kTemplate = std::string(kChatMl) + "{# <think></think> <tool_call></tool_call> #}";
const std::string kTools =
    R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"properties": {"city": {}}}}}])";
const std::string kCall =
    R"(<tool_call>\{"name": "get_weather", "arguments": \{"city": "[A-Z][a-z]{2,6}"\}\}</tool_call>)";

class ToolsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = chat_model(dir(), kTemplate); }

  static const TempDir& dir() {
    static const TempDir made;
    return made;
  }
  static std::string file(const std::string& name, const std::string& text) {
    std::ofstream(dir() / name, std::ios::binary) << text;
    return dir() / name;
  }
  static Ran run_with(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {program("qsf-run"), model_, "-n", "200", "--seed", "3"});
    return run(arguments, {.input = input, .environment = {}, .meanwhile = nullptr, .out = {}});
  }
  static Ran ask(const std::string& pattern, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--message", "Once upon", "--regex", pattern, "--tools", file("tools.json", kTools)});
    return run_with(more);
  }

  inline static std::string model_;
};

TEST_F(ToolsTest, CallsAreLinesOfJson) {
  const Ran ran = ask("<think>[a-z]{4,9}</think>\n\nI see\\.\n(" + kCall + "){2}");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string line = R"(\{"name":"get_weather","arguments":\{"city":"[A-Z][a-z]{2,6}"\}\})";
  EXPECT_TRUE(std::regex_match(ran.out, std::regex("I see\\.\n(" + line + "\n){2}"))) << ran.out;
  EXPECT_TRUE(std::regex_match(ran.err, std::regex("[a-z]{4,9}\n\n"))) << ran.err;
}

TEST_F(ToolsTest, ThoughtsAreHidden) {
  const Ran shown = ask("<think>[a-z]{4,9}</think> Yes\\."),
            hidden = ask("<think>[a-z]{4,9}</think> Yes\\.", {"--reasoning", "hide"});
  EXPECT_EQ(shown.out, "Yes.");
  EXPECT_EQ(hidden.out, "Yes.");
  EXPECT_NE(shown.err, "");
  EXPECT_EQ(hidden.err, "");
}

TEST_F(ToolsTest, WithoutToolsACallIsText) {
  const Ran ran = run_with({"--message", "Once upon", "--regex", kCall});
  EXPECT_TRUE(std::regex_match(ran.out, std::regex(kCall))) << ran.out;
}

/// The template refuses its variables, and its sentence shows them.
TEST_F(ToolsTest, TheNextMessagesAreTheResults) {
  const std::string path = file(
      "shows.jinja",
      "{% set m = messages %}{% if m | length >= 4 %}{{ raise_exception((m | map(attribute='role') | join(' ')) ~ ' ' "
      "~ "
      "m[1].tool_calls[0].function.arguments.city | length ~ ' ' ~ m[1].reasoning_content ~ ' ' ~ m[2].content ~ ' ' ~ "
      "m[3].content ~ ' ' ~ (m[2].tool_call_id == m[1].tool_calls[0].id) ~ (m[3].tool_call_id == "
      "m[1].tool_calls[1].id) ~ ' ' ~ m[3].name ~ ' ' ~ tools[0].function.name) }}{% endif %}" +
          kTemplate);
  const std::string call = R"(<tool_call>\{"name": "get_weather", "arguments": \{"city": "Rome"\}\}</tool_call>)";
  const Ran ran = run_with({"--chat", "--chat-template", path, "--tools", file("tools.json", kTools), "--regex",
                            "<think>hm</think>(" + call + "){2}", "--text-bytes", "26000000"},
                           "Once\nsunny\nwarm\n/undo\nOnce more\n");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "user assistant tool tool 4 hm sunny warm TrueTrue get_weather get_weather")) << ran.err;
  EXPECT_TRUE(has(ran.err, "the next message is the result of get_weather; /undo forgets the call")) << ran.err;
  const std::string line = "{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Rome\"}}\n";
  EXPECT_EQ(ran.out, line + line + line + line) << "after /undo the message is one of the user";
}

/// The template shows what the second run gives it by refusing it.
TEST_F(ToolsTest, ConversationsWithCallsGoOnInAnotherRun) {
  const std::string path = file(
      "shows_saved.jinja",
      "{% set m = messages %}{% if m | length >= 3 %}{{ raise_exception((m | map(attribute='role') | join(' ')) ~ ' ' "
      "~ m[1].tool_calls[0].function.arguments.city ~ ' ' ~ m[1].reasoning_content ~ ' ' ~ (m[2:] | "
      "map(attribute='content') | join(' ')) ~ ' ' ~ (m[2].tool_call_id == m[1].tool_calls[0].id) ~ ' ' ~ m[2].name) "
      "}}{% endif %}" +
          kTemplate);
  const std::string call = R"(<tool_call>\{"name": "get_weather", "arguments": \{"city": "Rome"\}\}</tool_call>)";
  const auto with = [&](const std::string& saved, const std::string& pattern, std::vector<std::string> more,
                        const std::string& input = "") {
    more.insert(more.end(), {"--chat-template", path, "--tools", file("tools.json", kTools), "--regex", pattern,
                             "--text-bytes", "26000000", "--session", dir() / saved});
    return run_with(more, input);
  };
  for (const int n : {1, 2}) {
    const std::string saved = "calls-" + std::to_string(n);
    const Ran first = with(saved, "<think>hm</think>(" + call + "){" + std::to_string(n) + "}", {"--message", "Once"});
    ASSERT_EQ(first.code, 0) << first.err;
    const Ran message = with(saved, call, {"--message", "sunny"}), chat = with(saved, call, {"--chat"}, "sunny\n");
    const std::string one = "user assistant tool Rome hm sunny True get_weather", all = "tool tool Rome hm x x True";
    EXPECT_EQ(message.code, 1);
    EXPECT_TRUE(has(message.err, n == 1 ? one : "has 2 calls, and --message gives the result of one")) << message.err;
    EXPECT_EQ(chat.code, 1);
    EXPECT_TRUE(has(chat.err, n == 1 ? "user assistant tool Rome hm x True get_weather" : all)) << chat.err;
  }
}

TEST_F(ToolsTest, FilesThatAreNoToolsAreRefusedInASentence) {
  for (const char* wrong : {"{}", "[1]", "[{\"name\": 1}]", "[{\"function\": {}}]", "[", "", "null"}) {
    const Ran ran = run_with({"--message", "x", "--tools", file("wrong.json", wrong)});
    EXPECT_EQ(ran.code, 1) << wrong;
    EXPECT_EQ(ran.out, "");
    const std::string is = *wrong == '\0' ? "is empty, and not" : "is not";
    EXPECT_TRUE(has(ran.err, "bad_input: ") && has(ran.err, is + " a JSON list of tools, such as [{\"type\":"))
        << ran.err;
  }
  const Ran deep = run_with({"--message", "x", "--tools", file("deep.json", std::string(300, '['))});
  EXPECT_TRUE(has(deep.err, "more than 200 deep")) << deep.err;
  EXPECT_TRUE(has(run_with({"--message", "x", "--tools", dir() / "none"}).err, "io_error: "));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"-p", "x", "--tools", "t.json"},
                                                {"-p", "x", "--reasoning", "hide"},
                                                {"--message", "x", "--reasoning", "maybe"}}) {
    EXPECT_EQ(run_with(wrong).code, 2);
  }
}

/// A template that writes calls, and opens thoughts if asked.
const std::string kCalling =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content }}{% for c in m.tool_calls %}<tool_call>"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% if think %}{{ "
    "'<think>\\n' }}{% endif %}{% endif %}{# <think></think> #}";
const std::string kStrict =
    R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city":
        {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"],
        "additionalProperties": false}}}, {"type": "function", "function": {"name": "get_time"}}])";

class HeldTest : public ToolsTest {
 protected:
  static Ran hold(std::vector<std::string> more, const std::string& tokens = "160", const std::string& seed = "3") {
    more.insert(more.begin(), {program("qsf-run"), model_, "-n", tokens, "--seed", seed, "--message", "Once upon",
                               "--chat-template", file("calling.jinja", kCalling)});
    return run(more);
  }
};

TEST_F(HeldTest, RequiredCallsFollowTheirSchemas) {
  const std::string tools = file("strict.json", kStrict);
  const std::regex weather(
      R"re(\{"name":"get_weather","arguments":\{("days":[1-9],)?"city":"(Rome|Oslo)"(,"days":[1-9])?\}\}\n[^]*)re"),
      time(R"(\{"name":"get_time","arguments":\{\}\}\n[^]*)");
  for (const char* seed : {"1", "2", "3", "4"}) {
    const Ran any = hold({"--tools", tools, "--tool-choice", "required"}, "160", seed);
    ASSERT_EQ(any.code, 0) << any.err;
    EXPECT_TRUE(std::regex_match(any.out, weather) || std::regex_match(any.out, time)) << any.out;
    const Ran named = hold({"--tools", tools, "--tool-choice", "get_weather"}, "160", seed);
    EXPECT_TRUE(std::regex_match(named.out, weather)) << named.out << named.err;
  }
  EXPECT_EQ(hold({"--tools", tools, "--tool-choice", "auto"}).code, 0);
}

TEST_F(HeldTest, ThoughtsEndAfterTheirBudget) {
  const std::vector<std::string> thinks{"--template-arg", "think=true"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), thinks.begin(), thinks.end());
    return hold(more, "40");
  };
  const Ran unlimited = with({}), none = with({"--reasoning-budget", "0"}), some = with({"--reasoning-budget", "5"});
  EXPECT_EQ(unlimited.out, "") << "this model never ends a thought";
  EXPECT_EQ(none.err, "");
  EXPECT_GT(none.out.size(), 20u);
  EXPECT_TRUE(!some.err.empty() && some.err.size() < unlimited.err.size()) << some.err;
  EXPECT_GT(some.out.size(), 20u);
}

TEST_F(HeldTest, AGrammarBeginsAfterTheThought) {
  const Ran ran = hold({"--template-arg", "think=true", "--reasoning-budget", "6", "--regex", "yes|no"});
  EXPECT_TRUE(std::regex_match(ran.out, std::regex("(yes|no)\n?"))) << ran.out;
  EXPECT_NE(ran.err, "");
}

TEST_F(HeldTest, MistakesAreReported) {
  const std::string tools = file("strict.json", kStrict);
  EXPECT_EQ(hold({"--tool-choice", "auto"}).code, 2) << "without tools";
  EXPECT_EQ(hold({"--tool-choice", "auto", "--tools", tools, "--regex", "x"}).code, 2);
  EXPECT_EQ(run_with({"-p", "x", "--reasoning-budget", "3"}).code, 2);
  const Ran none = hold({"--tool-choice", "get_price", "--tools", tools});
  EXPECT_TRUE(none.code == 1 && has(none.err, "there is no tool get_price")) << none.err;
  const Ran without = run_with({"--message", "x", "--tools", tools, "--tool-choice", "auto"});
  EXPECT_TRUE(without.code == 1 && has(without.err, "writes no calls")) << without.err;
}

}  // namespace
}  // namespace qsf::test
