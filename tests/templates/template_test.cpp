// The interface: origins of texts, refusals, errors with their lines, memory that is used again.
#include <gtest/gtest.h>

#include "rendered.h"

namespace qsf::templates::test {
namespace {

constexpr std::string_view kTalk = R"({"messages": [{"role": "user", "content": "a<|x|>b"}], "name": "<|y|>"})";
constexpr std::string_view kSpecial = R"({"bos_token": "<s>"})";

/// Returns the output with a `.` for each byte that is not the template's.
std::string own(std::string_view text) {
  const Rendered out = render(text, {kTalk, kSpecial});
  EXPECT_EQ(out.code, ErrorCode::none) << out.sentence;
  return out.own;
}

TEST(Origin, ValuesStayText) {
  EXPECT_EQ(own("<|u|>{{ messages[0].content }}<|e|>"), "<|u|>.......<|e|>");
  EXPECT_EQ(own("{{ bos_token + '[' + messages[0].content + ']' }}"), "<s>[.......]");
  EXPECT_EQ(own("{{ messages[0]['content'] ~ bos_token ~ name }}"), ".......<s>.....");
  EXPECT_EQ(own("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"), "<|user|>.......");
}

TEST(Origin, FollowsEachByteThroughFunctions) {
  EXPECT_EQ(own("{% set x = '[' + name + ']' %}{{ x[1:-1] }}{{ x[0] }}{{ x[:2] }}{{ x[::-1] }}"), ".....[[.].....[");
  EXPECT_EQ(own("{% set x = '[' + name + ']' %}{{ x | upper }}{{ x.title() }}{{ x | trim('[]') }}"),
            "[.....][.....].....");
  EXPECT_EQ(own("{{ (' ' + name + ' a').split() | join('+') }}"), ".....+a");
  EXPECT_EQ(own("{{ ('n' + name + 'n').replace('n', '--') }}{{ 'a-a' | replace('-', name) }}"), "--.....--a.....a");
  EXPECT_EQ(own("{{ {'k': name} | tojson }}{{ [name] }}{{ '%s!' % name }}{{ '{}?'.format(name) }}"),
            "{\"k\": \".....\"}['.....'].....!.....?");
  EXPECT_EQ(own("{{ messages | tojson }}"), "[{\"....\": \"user\", \".......\": \".......\"}]");
  EXPECT_EQ(own("{% set x %}<{{ name }}>{% endset %}{{ x }}{% macro m(y) %}({{ y }}){% endmacro %}{{ m(name) }}"),
            "<.....>(.....)");
  EXPECT_EQ(own("{{ ('a\n' + name) | indent(2) }}{{ name | e }}{{ name.center(7, '*') }}"),
            "a\n  " + std::string(5 + 11, '.') + "*.....*");
  EXPECT_EQ(own("{{ {'a': 'b c' + name} | urlencode }}{{ '{:>7}'.format(name) }}"),
            "a=b+c" + std::string(13, '.') + "  .....");
  EXPECT_EQ(own("{{ name | length }}{{ name | list | first }}{{ name == '<|y|>' }}"), "5.True");
}

TEST(Origin, ARoleIsTheTemplatesOnlyAsAnIdentifier) {
  const Rendered out =
      render("{{ m.role }}{{ n.role }}", {.values = R"({"m": {"role": "a-Z_0"}, "n": {"role": "<|x|>"}})"});
  EXPECT_EQ(out.own, "a-Z_0.....");
}

TEST(Template, ShowsItsOwnRefusal) {
  const std::string message(2000, 'x');
  const Rendered out = render("a\n{{ raise_exception(name + '\\n' + long) }}",
                              {.values = R"({"name": "No.", "long": ")" + message + "\"}"});
  EXPECT_EQ(out.code, ErrorCode::template_refusal);
  EXPECT_EQ(out.refusal, "No.\n" + message);
  EXPECT_TRUE(out.sentence.starts_with("No.?xxx")) << out.sentence;
  EXPECT_EQ(render("x").refusal, "");
}

TEST(Template, SaysTheLineOfAnError) {
  EXPECT_EQ(render("a\n\n{{ x.y }}").sentence, "line 3 of the chat template: 'x' is undefined, so it has no 'y'");
  EXPECT_EQ(render("a\n{% for x in y %}\n{{ x }\n").sentence, "line 3 of the chat template: '}' is not expected here");
  EXPECT_EQ(render("{% if a %}\n").sentence, "line 1 of the chat template: it ends inside a tag or a block");
  EXPECT_EQ(render("{{ 'a' | nope }}").sentence, "line 1 of the chat template: there is no filter 'nope'");
  EXPECT_EQ(render("{{ 1 is nope }}").sentence, "line 1 of the chat template: there is no test 'nope'");
  EXPECT_EQ(render("{% include 'x' %}").sentence, "line 1 of the chat template: there is no tag 'include' here");
  EXPECT_EQ(render("{{ [1].append(2) }}").sentence,
            "line 1 of the chat template: 'append' would change a list, which templates may not");
}

TEST(Template, RefusesNumbersAndFormsThatItCannotHold) {
  const std::string line = "line 1 of the chat template: ";
  for (const std::string_view number :
       {"'99999999999999999999' | int", "'-9223372036854775809' | int", "'fffffffffffffffff' | int(0, 16)",
        "1e20 | int", "'1e30' | int", "9223372036854775807 + 1"}) {
    EXPECT_EQ(render("{{ " + std::string(number) + " }}").sentence, line + "a whole number does not fit in 64 bits")
        << number;
  }
  for (const std::string_view form : {"'%.3d' % 5", "'%.1x' % 5", "'{:010,}'.format(1234567)"}) {
    EXPECT_EQ(render("{{ " + std::string(form) + " }}").sentence,
              line + "a value of type int cannot be formatted as a number here")
        << form;
  }
  for (const std::string_view form :
       {"'{:e}'.format(1.5)", "'{:g}'.format(1.5)", "'{:b}'.format(5)", "'{:o}'.format(5)", "'{:_}'.format(5)",
        "'{:#x}'.format(5)", "'{:{}}'.format(5, 6)"}) {
    EXPECT_EQ(render("{{ " + std::string(form) + " }}").sentence, line + "a place of a format has an unknown form")
        << form;
  }
  for (const std::string_view form :
       {"'%c' % 5", "'%e' % 5", "'%g' % 5", "'%o' % 5", "'%a' % 5", "'%u' % 5", "'%*d' % (5, 6)", "'%#x' % 5"}) {
    EXPECT_EQ(render("{{ " + std::string(form) + " }}").sentence, line + "a place of a format has an unknown type")
        << form;
  }
  for (const std::string_view method : {"swapcase", "istitle", "isascii", "expandtabs"}) {
    EXPECT_EQ(render("{{ 'a'." + std::string(method) + "() }}").sentence,
              line + "'" + std::string(method) + "' is not a method of this value");
  }
}

TEST(Template, UsesItsMemoryAgain) {
  std::vector<std::byte> memory(64 << 10);
  Result<Template> parsed = Template::parse("{{ x * 20000 }}", memory);
  ASSERT_TRUE(parsed);
  std::string text;
  const Sink sink{&text, [](void* to, std::string_view piece, bool) { *static_cast<std::string*>(to) += piece; }};
  for (int i = 0; i < 100; ++i) {
    text.clear();
    ASSERT_TRUE(parsed->render({.values = R"({"x": "a"})", .special = {}, .now = {}}, sink));
    EXPECT_EQ(text.size(), 20000u);
    EXPECT_LT(parsed->used_bytes(), memory.size());
    ASSERT_FALSE(parsed->render({.values = R"({"x": "aaaaaaa"})", .special = {}, .now = {}}, sink));
  }
}

TEST(Template, LimitsAreTheCallers) {
  EXPECT_EQ(render("{{ 'a' * 11 }}", {.limits = {.output_bytes = 10}}).code, ErrorCode::bad_template);
  EXPECT_EQ(render("{{ 'a' * 10 }}", {.limits = {.output_bytes = 10}}).text, "aaaaaaaaaa");
  EXPECT_EQ(render("{{ [[[[[1]]]]] }}", {.limits = {.depth = 5}}).code, ErrorCode::bad_template);
}

TEST(Template, UsedBytesCountFromTheBeginningOfItsMemory) {
  std::vector<std::byte> memory(64 << 10);
  const Sink sink{nullptr, [](void*, std::string_view, bool) {}};
  const std::string_view text = "{% set x = name + 'a' %}{{ x + 'b' }}";
  const auto used = [&](std::size_t skip) {
    Result<Template> parsed = Template::parse(text, std::span(memory).subspan(skip));
    EXPECT_TRUE(parsed && parsed->render({.values = kTalk, .special = {}, .now = {}}, sink));
    return parsed->used_bytes();
  };
  for (std::size_t skip = 1; skip < 8; ++skip) EXPECT_EQ(skip + used(skip), 8 + used(8)) << skip;
}

TEST(Template, ReadsVariables) {
  const Rendered out = render(
      "{{ a }}|{{ b }}|{{ c }}|{{ d }}",
      {.values =
           R"({"a": "\u00e9\ud83d\ude00\n\"\\\/", "b": [1, -2.50, 1e3, 12345678901234567890], "c": null, "d": "\ud800x"})"});
  EXPECT_EQ(out.text, "é😀\n\"\\/|[1, -2.5, 1000.0, 1.2345678901234567e+19]|None|\xEF\xBF\xBDx");
  EXPECT_EQ(render("{{ a }}", {.values = R"({"a": 1, "a": 2})"}).text, "2");
  EXPECT_EQ(render("{{ a }}", {.values = R"({"a": 1})", .special = R"({"a": "special"})"}).text, "1");
  EXPECT_EQ(render("{{ a }}{{ b }}", {.values = R"({"a": 1, "b": 2})", .more = R"({"b": 3})"}).text, "13");
  EXPECT_EQ(render("x", {.more = "[]"}).code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace qsf::templates::test
