// Templates and variables that must end in a sentence, soon.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "rendered.h"

namespace qsf::templates::test {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

/// Renders with a part of the default steps and memory, and expects an end in a sentence. What grows without being
/// counted takes longer than the time that CTest gives to all of these tests.
Rendered soon(std::string_view text, Given given = {}) {
  constexpr std::uint32_t kPart = 10;
  given.limits.steps = std::min(given.limits.steps, Limits{}.steps / kPart);
  given.memory = std::min(given.memory, kUsualMemory / kPart);
  Rendered out = render(text, given);
  EXPECT_NE(out.code, ErrorCode::none);
  EXPECT_NE(out.sentence, "");
  return out;
}

TEST(Hostile, EndlessLoops) {
  constexpr std::string_view kLoops =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% for c in range(100000) %}{% set x = a + b %}"
      "{% endfor %}{% endfor %}{% endfor %}";
  const Rendered out = soon(kLoops);
  EXPECT_TRUE(out.code == ErrorCode::bad_template || out.code == ErrorCode::out_of_memory) << out.sentence;
  const Rendered steps = soon(kLoops, {.limits = {.steps = 1000}});
  EXPECT_EQ(steps.sentence, "line 1 of the chat template: it takes more than 1000 steps");
}

TEST(Hostile, TextsThatDouble) {
  for (const std::string_view grow :
       {"ns.x + ns.x", "ns.x ~ ns.x", "ns.x * 9", "ns.x | replace('a', 'aaaa')", "[ns.x, ns.x] | join",
        "'%s%s' % (ns.x, ns.x)", "'{0}{0}'.format(ns.x)", "ns.x.center(9000000)", "[ns.x, ns.x] | tojson",
        "(ns.x | indent(99999, true))"}) {
    SCOPED_TRACE(grow);
    const Rendered out =
        soon("{% set ns = namespace(x='a') %}{% for i in range(99999) %}{% set ns.x = " + std::string(grow) +
             " %}{% endfor %}");
    EXPECT_TRUE(out.code == ErrorCode::out_of_memory || out.sentence.ends_with("steps")) << out.sentence;
  }
}

TEST(Hostile, ListsThatDouble) {
  for (const std::string_view grow : {"ns.x + ns.x", "ns.x * 100", "[ns.x, ns.x]", "{'a': ns.x, 'b': ns.x}"}) {
    SCOPED_TRACE(grow);
    soon("{% set ns = namespace(x=[1]) %}{% for i in range(99999) %}{% set ns.x = " + std::string(grow) +
         " %}{% endfor %}{{ ns.x }}");
  }
}

TEST(Hostile, DeepNesting) {
  constexpr int kTimes = 5000;
  for (const std::string& text :
       {"{{ " + repeated("(", kTimes) + "1" + repeated(")", kTimes) + " }}",
        "{{ " + repeated("[", kTimes) + repeated("]", kTimes) + " }}",
        "{{ " + repeated("{1:", kTimes) + "1" + repeated("}", kTimes) + " }}",
        "{{ " + repeated("not ", kTimes) + "1 }}", "{{ " + repeated("-", kTimes) + "1 }}",
        "{{ " + repeated("1 + ", kTimes) + "1 }}", "{{ " + repeated("1 ** ", kTimes) + "1 }}",
        "{{ 1" + repeated(" | abs", kTimes) + " }}", "{{ x" + repeated(".y", kTimes) + " }}",
        "{{ x" + repeated("[0]", kTimes) + " }}", "{{ " + repeated("f(", kTimes) + repeated(")", kTimes) + " }}",
        "{{ 1" + repeated(" if 1 else 1", kTimes) + " }}",
        repeated("{% if 1 %}", kTimes) + repeated("{% endif %}", kTimes),
        repeated("{% for x in [1] %}", kTimes) + repeated("{% endfor %}", kTimes),
        "{% for " + repeated("(", kTimes) + "x" + repeated(")", kTimes) + " in [] %}{% endfor %}",
        "{% set x" + repeated(" | upper", kTimes) + " %}{% endset %}"}) {
    SCOPED_TRACE(text.substr(0, 20));
    EXPECT_EQ(soon(text).code, ErrorCode::bad_template);
  }
  EXPECT_EQ(soon("{{ x }}", {.values = repeated("[", kTimes)}).code, ErrorCode::bad_template);
}

TEST(Hostile, Recursion) {
  for (const std::string_view text :
       {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{% macro f(a=f()) %}{% endmacro %}{{ f() }}",
        "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller }}{% endmacro %}{{ f() }}",
        "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] "
        "}}",
        "{% set x = [[1]] %}{% for y in x recursive %}{{ loop(x) }}{% endfor %}"}) {
    SCOPED_TRACE(text);
    EXPECT_TRUE(soon(text).sentence.find("nested more than 250 deep") != std::string::npos) << soon(text).sentence;
  }
}

TEST(Hostile, ManyCallsInEachOther) {  // 2^200 calls, in a small depth
  std::string text = "{% macro f0() %}{% endmacro %}";
  for (int i = 1; i < 60; ++i) {
    const std::string before = "{{ f" + std::to_string(i - 1) + "() }}";
    text += "{% macro f" + std::to_string(i) + "() %}" + before + before + "{% endmacro %}";
  }
  soon(text + "{{ f40() }}");
}

TEST(Hostile, Ranges) {
  for (const std::string_view range :
       {"range(100001)", "range(10 ** 18)", "range(0, 10 ** 18, 10 ** 17 * 0)", "range(0 - 10 ** 18, 10 ** 18)",
        "range(9223372036854775807)", "range(-9223372036854775807, 9223372036854775807)"}) {
    EXPECT_EQ(soon("{{ " + std::string(range) + " }}").code, ErrorCode::bad_template) << range;
  }
}

TEST(Hostile, Output) {
  const Rendered out = render("{% set x = 'a' * 300000 %}{% for i in range(100000) %}{{ x }}{% endfor %}");
  EXPECT_EQ(out.sentence, "line 1 of the chat template: its output has more than 16777216 bytes");
  EXPECT_LE(out.text.size(), Limits{}.output_bytes);
}

TEST(Hostile, SlowFunctions) {
  for (const std::string_view text :
       {"{% for i in range(100000) %}{% set x = 'ab' * 100000 %}{% endfor %}",
        "{% set x = 'a' * 300000 %}{% for i in range(100000) %}{% if x == x ~ '' %}{% endif %}{% endfor %}",
        "{% set x = 'a' * 300000 %}{% for i in range(100000) %}{% if 'b' in x %}{% endif %}{% endfor %}",
        "{% set x = 'a' * 300000 %}{% for i in range(100000) %}{% set y = x.find('ab') %}{% endfor %}",
        "{% set x = 'a' * 300000 %}{% for i in range(100000) %}{% set y = x.split('b') %}{% endfor %}",
        "{% set x = 'a' * 300000 %}{% set y = 'a' * 150000 + 'b' %}{{ y in x }}{{ x.replace(y, '') }}{{ x.rfind(y) }}",
        "{% set x = ' ' * 300000 %}{% for i in range(100000) %}{% set y = x.strip() %}{% endfor %}",
        "{% set x = ' ' * 300000 %}{% for i in range(100000) %}{% set y = x.split() %}{% endfor %}",
        "{% set x = ' ' * 100000 %}{% for i in range(100000) %}{% set y = x.splitlines() %}{% endfor %}",
        "{% set x = 'é' * 150000 %}{% for i in range(100000) %}{% set y = x[-1] %}{% endfor %}",
        "{% set x = 'é' * 150000 %}{% for i in range(100000) %}{% set y = x.startswith('a') %}{% endfor %}",
        "{% set x = 'é' * 150000 %}{% for i in range(100000) %}{% set y = x | length %}{% endfor %}{{ x.upper() }}"
        "{% for i in range(100000) %}{% set y = x.upper() %}{% endfor %}",
        "{% set x = range(100000) %}{% for i in range(100000) %}{% if -1 in x %}{% endif %}{% endfor %}",
        "{% set x = range(100000) | list %}{% for i in x %}{% set y = x[1:] %}{% endfor %}",
        "{% set x = range(100000) | reverse | list %}{% for i in x %}{% set y = x | sort %}{% endfor %}",
        "{{ range(100000) | unique | list | length }}",
        "{{ range(100000) | map('string') | unique | list | length }}",
        "{% for i in range(100000) %}{{ (i + 0.1) / 3 }}{% endfor %}{% for i in range(100000) %}{{ i / 7e9 }}{% endfor "
        "%}",
        "{% for i in range(100000) %}{% set y = '1.2345678901234567890123e-300' | float %}{% endfor %}"
        "{% for i in range(100000) %}{% set y = '1.2345678901234567890123e-300' | float %}{% endfor %}",
        "{% for i in range(100000) %}{% set y = '%.60f' % 1e-9 %}{% endfor %}{% for i in range(100000) %}"
        "{% set y = '%.60f' % 1e-9 %}{% endfor %}",
        "{% for i in range(100000) %}{% set x = 3 ** 39 %}{{ 2.0 ** 2000 }}{% endfor %}"}) {
    SCOPED_TRACE(text);
    soon(text);
  }
}

TEST(Hostile, LongTextsInOneStep) {
  const std::string loop = "{% for i in range(5000) %}{% set y = ";
  for (const std::string_view text :
       {"'0' * 100000|z|int", "'0' * 100000|z|float", "' ' * 100000|b|int", "'x' * 100000|b|float",
        "'a' * 100000|b.startswith(c)", "'a' * 100000|b.removeprefix(c)", "'a' * 100000|d.endswith(e)",
        "'a' * 100000|b.startswith(('x', c))", "' ' ~ 'a' * 100000|z | truncate(99000)",
        "'{' ~ 'a' * 100000 ~ '}'|z.format(**{z[1:-1]: ''})", "'%(' ~ 'a' * 100000 ~ ')s'|z % {z[2:-2]: ''}",
        "'a' * 100000|{b: 1}[c]", "'a' * 100000|dict({b: 1}).get(c)", "'a' * 100000|[[1]] | map(attribute=z) | list",
        "'b' ~ '😀' * 25000|z.splitlines()", "'%Z' * 50000|strftime_now(z)"}) {
    SCOPED_TRACE(text);
    const std::size_t bar = text.find('|');
    const Rendered out =
        soon("{% set z = " + std::string(text.substr(0, bar)) + " %}{% set b, c, d, e = z ~ 1, z ~ 2, 1 ~ z, 2 ~ z %}" +
             loop + std::string(text.substr(bar + 1)) + " %}{% endfor %}");
    EXPECT_TRUE(out.sentence.ends_with("steps")) << out.sentence;
  }
  const std::string name(100'000, 'n');
  for (const std::string& text :
       {std::string("{{ ('a' * 100000).strip('b' * 100000 ~ 'a') | length }}"),
        "{% set " + name + "a = 1 %}" + loop + name + "b %}{% endfor %}",
        "{% for i in range(2000) %}{% set " + name + "a, " + name + "b = 1, 2 %}{% endfor %}",
        "{% macro m(" + name + "a=1) %}{% if kwargs %}{% endif %}{% endmacro %}" + loop + "m(" + name +
            "b=1) %}{% endfor %}",
        std::string("{% set x = '{k1499}' * 1000 %}{% for i in range(100) %}{% set y = x.format(**v) %}{% endfor %}"),
        repeated("{% set x = [x] %}", 200) + "{% set x = [range(1000) | list] %}" + repeated("{% set x = [x] %}", 90) +
            "{% for i in range(20) %}{% set y = x | tojson(indent='') %}{% endfor %}",
        std::string("{% for i in range(20000) %}{% set y = 1.0 ** 2000 %}{% endfor %}"),
        repeated("{% with %}", 240) + "{% for i in range(30000) %}{% if x %}{% endif %}{% endfor %}" +
            repeated("{% endwith %}", 240)}) {
    SCOPED_TRACE(text.substr(0, 40));
    std::string values = R"({"v": {"k0": 0)";
    for (int i = 1; i < 1500; ++i) values += ", \"k" + std::to_string(i) + "\": 0";
    const Rendered out = soon(text, {.values = values + "}}"});
    EXPECT_TRUE(out.sentence.ends_with("steps")) << out.sentence;
  }
}

TEST(Hostile, NamesWithLongEqualBeginnings) {
  std::string values = "{", keys;
  const std::string name(6000, 'n');
  for (int i = 1000; i < 1200; ++i) values += '"' + name + std::to_string(i) + "\":0,";
  const Rendered out = soon("x", {.values = values + "\"a\":0}"});
  EXPECT_TRUE(out.sentence.ends_with("steps")) << out.sentence;
}

TEST(Hostile, ManyNames) {
  std::string sets, values = "{\"a\":1";
  for (int i = 0; i < 20000; ++i) sets += "{% set a" + std::to_string(i) + " = a0 %}";
  for (int i = 0; i < 50000; ++i) values += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  soon(sets);
  soon("{{ a }}", {.values = values + "}"});
}

TEST(Hostile, LittleMemory) {
  const std::string text = "{% macro m(x) %}{{ x | upper }}{% endmacro %}{% for x in y %}{{ m(x) }}{% endfor %}";
  const Given enough{.values = R"({"y": ["a", "b", "c\n"]})"};
  const Rendered full = render(text, enough);
  EXPECT_EQ(full.text, "ABC\n");
  for (std::size_t bytes = 0; bytes < full.used_bytes; ++bytes) {
    Given little = enough;
    little.memory = bytes;
    ASSERT_EQ(render(text, little).code, ErrorCode::out_of_memory) << bytes;
  }
}

TEST(Hostile, CutTemplates) {
  const std::string text =
      "{%- macro m(a, b=[1, {'k': \"v\\n\"}]) -%}{{ a[1:2] ~ b|join(',') if a is string else -1.5e3 }}{% endmacro %}"
      "{% for k, (v, w) in x.items() if not k in [1] recursive %}{% set ns.y = k | tojson(indent=2) %}{# c #}"
      "{% else %}{% filter upper %}{% raw %}{{{% endraw %}{% endfilter %}{% endfor %}{% call(z) m(*q, **r) %}{% "
      "endcall %}";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const Rendered out = render(text.substr(0, size));
    EXPECT_TRUE(out.code == ErrorCode::none || out.code == ErrorCode::bad_template) << size << ": " << out.sentence;
  }
}

TEST(Hostile, Variables) {
  for (const std::string_view values :
       {"", "[]", "1", "null", "{", "{\"a\"", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{} {}", "{\"a\":[1,]}", "{\"a\":tru}",
        "{\"a\":1e}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"", "{\"a\":--1}", "{\"a\":+1}x",
        "{\"a\":\"\xff\"}"}) {
    EXPECT_EQ(soon("x", {.values = values}).code, ErrorCode::bad_input) << values;
  }
  EXPECT_EQ(soon("x", {.special = "[1]"}).code, ErrorCode::bad_input);
  EXPECT_EQ(soon("\xff").code, ErrorCode::bad_text);
}

}  // namespace
}  // namespace qsf::templates::test
