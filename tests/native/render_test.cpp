// qsf-run --render: with a template from a file, with a model's own, and refused.
#include <gtest/gtest.h>

#include "native/chat_model.h"

namespace qsf::test {
namespace {

constexpr const char* kMessages = R"({"messages": [{"role": "user", "content": "Grüße"}]})";

class RenderTest : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }
  /// Renders the variables by the template.
  Ran render(const std::string& chat_template, const std::string& variables) {
    return run({program("qsf-run"), "--render", file("variables.json", variables), "--chat-template",
                file("template.jinja", chat_template)});
  }

  TempDir dir_;
};

TEST_F(RenderTest, NeedsNoModel) {
  const Ran ran = render(kChatMl, kMessages);
  EXPECT_EQ(ran.out, "<|im_start|>user\nGrüße<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.code, 0);
}

TEST_F(RenderTest, TakesSpecialTokensTimeAndKeywords) {
  const Ran ran =
      render("{{ bos_token }}{{ strftime_now('%d %b %Y %H:%M') }}{{ k }}{{ add_generation_prompt }}{{ now }}\n\n",
             R"({"special": {"bos_token": "<s>"}, "now": "2026-11-26T12:00", "k": 1.5,
                             "add_generation_prompt": false})");
  EXPECT_EQ(ran.out, "<s>26 Nov 2026 12:001.5False\n");
  EXPECT_EQ(ran.code, 0);
}

// Many keys, and long ones that begin alike, are read in their order; the time is not that of comparing each with all.
TEST_F(RenderTest, TakesManyAndLongKeysAndEachOnce) {
  std::string variables = "{\"messages\": []", wanted;
  for (int i = 0; i < 100; ++i) variables += ",\"" + std::string(1000, 'k') + std::to_string(999 - i) + "\": 1";
  variables += ", \"more\": {";
  for (int i = 0; i < 500; ++i) {
    variables += (i == 0 ? "\"" : ",\"") + std::to_string(9999 - i) + "\": [{}, {\"a\": null}]";
    wanted += std::to_string(9999 - i) + " ";
  }
  const Ran all = render("{% for k in more %}{{ k }} {% endfor %}", variables + "}}");
  EXPECT_TRUE(all.out == wanted) << all.err;
  for (const char* twice : {R"({"a": 1, "b": 2, "a": 1})", R"({"messages": [{"role": "x", "a": [], "a": []}]})"}) {
    const Ran ran = render("x", twice);
    EXPECT_EQ(ran.code, 1);
    EXPECT_NE(ran.err.find("has an object with the key 'a' twice"), std::string::npos) << ran.err;
  }
}

TEST_F(RenderTest, RefusesTimesThatAreNone) {
  const std::string text = "{{ strftime_now('%F %T') }}";
  const auto at = [&](const std::string& now) { return render(text, R"({"now": ")" + now + "\"}"); };
  EXPECT_EQ(at("2026-11-26").out, "2026-11-26 00:00:00");
  EXPECT_EQ(at("2028-02-29T23:59").out, "2028-02-29 23:59:00");
  EXPECT_EQ(at("2026-11-26T12:00:59").out, "2026-11-26 12:00:59");
  for (const char* now : {"2026-13-01T00:00", "2026-00-01", "2026-02-30", "2027-02-29", "2026-11-26T25:00",
                          "2026-11-26T12:60", "2026-11-26T12:00:60", "2026-11-26 12:00", "2026-11-26T12", "2026-11-26T",
                          "2026-11-26T12:00Z", "0000-01-01", "2026-11--1", "26 November", ""}) {
    SCOPED_TRACE(now);
    const Ran ran = at(now);
    EXPECT_NE(ran.code, 0);
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find("bad_input: 'now' of "), std::string::npos) << ran.err;
  }
}

TEST_F(RenderTest, UsesTheTemplateAndTokensOfAModel) {
  const std::string model = chat_model(dir_, "{{ bos_token }}|{{ messages[0].content }}|", {{"bos_token", "<b>"}});
  const std::string variables = file("variables.json", kMessages);
  EXPECT_EQ(run({program("qsf-run"), model, "--render", variables}).out, "<b>|Grüße|");
  EXPECT_EQ(
      run({program("qsf-run"), model, "--render", variables, "--chat-template", file("t", "{{ bos_token }}!")}).out,
      "<b>!");
}

/// The tokens of the vocabulary, whether the file's own template names them or there is none.
TEST_F(RenderTest, KnowsTheEndsOfAModelWithAnotherTemplate) {
  const std::string variables = file("variables.json", kMessages);
  const std::string asked = file("t", "{{ bos_token }}{{ eos_token }}{{ messages[0].content }}");
  for (const char* own : {"{{ messages[0].content }}", ""}) {
    const std::string model = chat_model(dir_, own);
    EXPECT_EQ(run({program("qsf-run"), model, "--render", variables, "--chat-template", asked}).out,
              "<|endoftext|><|endoftext|>Grüße")
        << own;
  }
}

TEST_F(RenderTest, ShowsRefusalsAndErrors) {
  const Ran refused = render("a{{ raise_exception('Roles must alternate') }}", kMessages);
  EXPECT_EQ(refused.err, "qsf-run: template_refusal: Roles must alternate\n");
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.code, 1);
  const Ran broken = render("a\n{% if %}", kMessages);
  EXPECT_EQ(broken.err, "qsf-run: bad_template: line 2 of the chat template: a tag ends too early\n");
  EXPECT_EQ(broken.code, 1);
}

TEST_F(RenderTest, RefusesFilesThatAreNoVariables) {
  EXPECT_NE(render("x", "[1]").err.find("bad_input"), std::string::npos);
  EXPECT_NE(render("x", "{").err.find("bad_input"), std::string::npos);
  EXPECT_NE(render("x", R"({"now": "soon"})").err.find("'now'"), std::string::npos);
  EXPECT_NE(render("x", R"({"a": )" + std::string(300, '[') + std::string(300, ']') + "}").err.find("200 deep"),
            std::string::npos);
  EXPECT_EQ(render("x", R"({"special": [1]})").code, 1);
}

TEST_F(RenderTest, RefusesOtherOptions) {
  const std::string variables = file("variables.json", kMessages);
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--render", variables},
                                               {"--chat-template", variables},
                                               {"--render", variables, "--chat-template", variables, "--prompt", "x"},
                                               {"--render", variables, "--chat-template", variables, "--chat"}}) {
    std::vector<std::string> arguments{program("qsf-run")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run(arguments).code, 2);
  }
}

}  // namespace
}  // namespace qsf::test
