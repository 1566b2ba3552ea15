// The reader's rules: which text is text, how values are converted, and how hostile answers end.
#include "answers/reader.h"

#include <gtest/gtest.h>

#include "answers/read.h"
#include "tests/support/error_of.h"

namespace qsf::answers::test {
namespace {

constexpr std::string_view kHermes = "<tool_call> <think>",
                           kCoder = "<tool_call> <function=", kGlm = "<tool_call> <arg_key> <arg_value>",
                           kPython = "<|tool_call_start|>", kMistral = "[TOOL_CALLS] [ARGS]", kHarmony = "<|channel|>";

const Tools& tools() {
  static const OwnTools own;
  return own.tools;
}

/// Reads an answer with marks as text, in pieces of every small size.
std::vector<Said> said(std::string_view chat_template, std::string_view answer, std::string_view prompt = {},
                       std::size_t memory = 1 << 16) {
  const Marks marks = marks_of(chat_template, false);
  std::vector<Said> first;
  for (std::size_t size = 1; size <= 7; ++size) {
    Reading reading(marks, tools(), prompt, memory);
    for (std::size_t at = 0; at < answer.size(); at += size) reading.text(answer.substr(at, size));
    const std::vector<Said> parts = reading.end();
    if (size == 1) first = parts;
    EXPECT_EQ(parts, first) << size;
  }
  return first;
}
std::vector<Said> only(const Said& part) { return {part}; }

TEST(Reader, GivesTextThatIsNoCallWhole) {
  for (const std::string_view answer : {
           "<tool_call>",
           "<tool_call",
           "Use <tool_call> tags to call.",
           "<tool_call>{\"name\": \"get_weather\"",
           "<tool_call>{\"name\": 5}</tool_call> and more",
           "<tool_call>{\"name\": \"now\", \"arguments\": [1]}</tool_call>",
           "<tool_call>{\"name\": \"now\", \"arguments\": {}</tool_call>",
           "<tool_call>now {</tool_call>",
           "<tool_call>[]</tool_call>",
           "<tool_call>{}</tool_call>",
           "<tool_call>{\"arguments\": {}}</tool_call>",
           "<tool_call>{'name': \"now\", 'arguments': {bad}}</tool_call>",
           "<tool_call>(now)</tool_call>",
           "<<tool_call>  a b <tool_call>",
           "{\"city\": \"Zürich\"}",
           "{\"name\": \"nobody\", \"arguments\": {}}",
           "{\"name\": \"now\"}",
           "[1] Müller, 2020",
           "[link](address) and text",
           "```python\nprint(1)\n```",
           "{",
           "[",
           "```",
       }) {
    EXPECT_EQ(said(kHermes, answer), only(text(answer)));
  }
  EXPECT_EQ(said(kMistral, "[TOOL_CALLS]now"), only(text("[TOOL_CALLS]now"))) << "the answer ends in the middle";
  EXPECT_EQ(said(kMistral, "[TOOL_CALLS]now[ARGS]"), only(text("[TOOL_CALLS]now[ARGS]")));
  EXPECT_EQ(said(kMistral, "[TOOL_CALLS]now[ARGS]{\"a\":"), only(text("[TOOL_CALLS]now[ARGS]{\"a\":")));
  EXPECT_EQ(said(kPython, "<|tool_call_start|>now(1)<|tool_call_end|>"),
            only(text("<|tool_call_start|>now(1)<|tool_call_end|>")))
      << "an argument without a name";
  EXPECT_EQ(said(kCoder, "<tool_call><function=now><b></function></tool_call>"),
            only(text("<tool_call><function=now><b></function></tool_call>")));
  EXPECT_EQ(said(kGlm, "<tool_call>now<arg_key>a</arg_key>b</tool_call>"),
            only(text("<tool_call>now<arg_key>a</arg_key>b</tool_call>")));
}

TEST(Reader, GoesOnAfterTextThatIsNoCall) {
  EXPECT_EQ(
      said(kHermes, "Write <tool_call> like <think>so</think> then\n<tool_call>{\"name\": \"now\"}</tool_call>\nDone."),
      (std::vector<Said>{text("Write <tool_call> like"), thought("so"), text("then"), call("now", "{}"),
                         text("Done.")}));
  EXPECT_EQ(said(kHermes, "<tool_call>{\"name\": \"now\"}}</tool_call>"),
            (std::vector<Said>{call("now", "{}"), text("}</tool_call>")}))
      << "a call is given once it is whole";
}

TEST(Reader, HasMarksInStringsAsText) {
  EXPECT_EQ(said(kHermes, R"(<tool_call>{"name": "set", "arguments": {"any": "a</tool_call>\"<think>"}}</tool_call>)"),
            only(call("set", R"({"any":"a</tool_call>\"<think>"})")));
  EXPECT_EQ(said(kPython, "<|tool_call_start|>[set(any='it\\'s <|tool_call_end|>')]<|tool_call_end|>"),
            only(call("set", R"({"any":"it's <|tool_call_end|>"})")));
}

TEST(Reader, HasTheWordsOfTokensAsText) {
  const Marks marks = marks_of(kGlm, true);
  Reading reading(marks, tools());
  reading.text("a <tool_call>now</tool_call> b");
  reading.token(mark_of("<tool_call>"));
  reading.text("set");
  for (const std::string_view part : {"<arg_key>", "any", "</arg_key>", "<arg_value>"}) {
    if (part == "any") {
      reading.text(part);
    } else {
      for (std::size_t i = 0; i < kMarks; ++i) {
        if (mark_text(i) == part) reading.token(i);
      }
    }
  }
  reading.text("x</arg_value></tool_call>y");
  reading.token(mark_of("</arg_value>"));
  reading.token(mark_of("</tool_call>"));
  EXPECT_EQ(reading.end(), (std::vector<Said>{text("a <tool_call>now</tool_call> b"),
                                              call("set", R"({"any":"x</arg_value></tool_call>y"})")}));
}

TEST(Reader, ConvertsTagsByTheSchema) {
  const auto set = [](std::string_view name, std::string_view value) {
    const std::string coder = "<tool_call>\n<function=set>\n<parameter=" + std::string(name) + ">\n" +
                              std::string(value) + "\n</parameter>\n</function>\n</tool_call>";
    const std::vector<Said> parts = said(kCoder, coder);
    EXPECT_EQ(parts.size(), 1u);
    const std::string glm = "<tool_call>set\n<arg_key>" + std::string(name) + "</arg_key>\n<arg_value>" +
                            std::string(value) + "</arg_value>\n</tool_call>";
    EXPECT_EQ(said(kGlm, glm), parts);
    return parts.front().arguments;
  };
  EXPECT_EQ(set("number", "2.5"), R"({"number":2.5})");
  EXPECT_EQ(set("number", "-1e3"), R"({"number":-1e3})");
  EXPECT_EQ(set("number", "two"), R"({"number":"two"})") << "what is none of the types stays a string";
  EXPECT_EQ(set("truth", "true"), R"({"truth":true})");
  EXPECT_EQ(set("truth", "False"), R"({"truth":false})");
  EXPECT_EQ(set("list", "[1, \"a\"]"), R"({"list":[1,"a"]})");
  EXPECT_EQ(set("list", "{\"a\": 1}"), R"({"list":"{\"a\": 1}"})");
  EXPECT_EQ(set("object", "{\"a\": {\"b\": null}}"), R"({"object":{"a":{"b":null}}})");
  EXPECT_EQ(set("nothing", "null"), R"({"nothing":null})");
  EXPECT_EQ(set("maybe", "null"), R"({"maybe":null})");
  EXPECT_EQ(set("maybe", "5"), R"({"maybe":"5"})");
  EXPECT_EQ(set("either", "5"), R"({"either":5})");
  EXPECT_EQ(set("either", "5.5"), R"({"either":"5.5"})");
  EXPECT_EQ(set("either", "5.0"), R"({"either":5.0})");
  EXPECT_EQ(set("level", "2"), R"({"level":2})");
  EXPECT_EQ(set("one", "true"), R"({"one":true})");
  EXPECT_EQ(set("referred", "20"), R"({"referred":20})");
  EXPECT_EQ(set("any", "5"), R"({"any":"5"})") << "no schema says otherwise";
  EXPECT_EQ(set("unknown", "true"), R"({"unknown":"true"})");
  EXPECT_EQ(set("any", "<b>\n \"a\"\t\\"), "{\"any\":\"<b>\\u000a \\\"a\\\"\\u0009\\\\\"}");
}

TEST(Reader, ConvertsPythonAndLooseJson) {
  const auto set = [](std::string_view value) {
    const std::vector<Said> parts =
        said(kPython, "<|tool_call_start|>[set(any=" + std::string(value) + ")]<|tool_call_end|>");
    return parts.size() == 1 && parts.front().kind == AnswerPart::call ? parts.front().arguments
                                                                       : std::string("no call");
  };
  EXPECT_EQ(set("'it\\'s'"), R"({"any":"it's"})");
  EXPECT_EQ(set("\"\\u00e9\\ud83d\\ude00\\x41\\n\""), "{\"any\":\"é\U0001F600A\\u000a\"}");
  EXPECT_EQ(set("'\\ud800x'"), "{\"any\":\"\uFFFDx\"}") << "half a character";
  EXPECT_EQ(set("'\\d+'"), R"({"any":"\\d+"})");
  EXPECT_EQ(set("[True, None, (1, -2.5), {'a': {}}, ]"), R"({"any":[true,null,[1,-2.5],{"a":{}}]})");
  EXPECT_EQ(set("{a: 1, 2: 3}"), R"({"any":{"a":1,"2":3}})");
  for (const std::string_view wrong : {"x", "01", "1.", ".5", "+1", "1_000", "f(1)", "[1", "'a", "nan", "1 2", "-"}) {
    EXPECT_EQ(set(wrong), "no call") << wrong;
  }
}

TEST(Reader, TakesArgumentsThatAreText) {
  EXPECT_EQ(said(kHermes, R"(<tool_call>{"name": "now", "arguments": "{\"a\": \"\\n\"}"}</tool_call>)"),
            only(call("now", R"({"a":"\u000a"})")));
  EXPECT_EQ(said(kHermes, R"(<tool_call>{"name": "now", "arguments": ""}</tool_call>)"), only(call("now", "{}")));
  EXPECT_EQ(said(kHermes, R"(<tool_call>{"name": "now", "arguments": null}</tool_call>)"), only(call("now", "{}")));
  const std::string_view wrong = R"(<tool_call>{"name": "now", "arguments": "a"}</tool_call>)";
  EXPECT_EQ(said(kHermes, wrong), only(text(wrong)));
  EXPECT_EQ(
      said(kHermes, R"(<tool_call>{"type": "function", "function": {"name": "now", "arguments": {}}}</tool_call>)"),
      only(call("now", "{}")));
}

TEST(Reader, KeepsBlanksThatAreNotNextToMarks) {
  EXPECT_EQ(said(kHermes, "  a \n b  "), only(text("  a \n b  ")));
  const std::string many(200, ' ');
  EXPECT_EQ(said(kHermes, "a" + many + "b"), only(text("a" + many + "b")));
  EXPECT_EQ(said(kHermes, " <think> a  b </think> c "), (std::vector<Said>{thought("a  b"), text("c ")}));
  EXPECT_EQ(said("", "  a \n b  "), only(text("  a \n b  ")));
}

TEST(Reader, HidesHeadersAndKeepsWhatFollowsNone) {
  EXPECT_EQ(said(kHarmony, "<|channel|>final<|message|>a<|end|><|start|>assist", "<|start|>assistant"),
            only(text("a")));
  EXPECT_EQ(said(kHarmony, "Hello <b>there</b>", "<|start|>assistant"), only(text("Hello <b>there</b>")));
  EXPECT_EQ(said(kHarmony, "<|channel|>analysis<|message|>a<|end|>b", "<|start|>assistant"),
            (std::vector<Said>{thought("a"), text("b")}));
  const std::string endless(600, 'x');
  EXPECT_EQ(said(kHarmony, "<|channel|>" + endless, "<|start|>assistant").front().text.size(), 600 + 11u);
  EXPECT_EQ(said(kHarmony, "<|channel|>commentary to=python<|message|>print(1)<|call|>", "<|start|>assistant"),
            only(text("print(1)")))
      << "code that is no object";
}

TEST(Reader, HasNoCallsWithoutTools) {
  const OwnTools none("{}");
  const std::string_view answer = "<tool_call>{\"name\": \"now\"}</tool_call>{\"name\": \"now\", \"arguments\": {}}";
  Reading reading(marks_of(kHermes, false), none.tools);
  reading.text(answer);
  EXPECT_EQ(reading.end(), only(text(answer)));
}

TEST(Tools, AreReadFromEitherObject) {
  const OwnTools replaced(kTools, R"({"tools": [{"name": "only"}, {"type": "code"}, 5]})");
  EXPECT_TRUE(replaced.tools.has("only"));
  EXPECT_FALSE(replaced.tools.has("now"));
  EXPECT_FALSE(OwnTools(R"({"tools": null})").tools.any());
  EXPECT_FALSE(OwnTools(R"({"tools": "text"})").tools.any());
  EXPECT_FALSE(OwnTools("not JSON without the word").tools.any());
  EXPECT_TRUE(tools().has("set"));
  EXPECT_EQ(tools().types_of("set", "level"), types::kNumber);
  EXPECT_EQ(tools().types_of("now", "level"), types::kUnknown);
  std::vector<std::byte> memory(1 << 16);
  const std::span<std::byte> all(memory);
  for (std::size_t size = 0; size < 4096; size += 64) {
    Store store(all.first(size)), scratch(all.subspan(4096));
    const auto read = Tools::read(kTools, {}, store, scratch);
    if (!read) {
      EXPECT_EQ(read.error().code, ErrorCode::out_of_memory) << read.error().sentence;
    }
  }
  Store store(memory), nothing;
  EXPECT_EQ(error_of(Tools::read(kTools, {}, store, nothing)).code, ErrorCode::out_of_memory);
  const std::string loop = R"({"tools": [{"name": "f", "parameters": {"properties": {"a": {"$ref": "#/$defs/A"}},)"
                           R"("$defs": {"A": {"$ref": "#/$defs/A"}}}}]})";
  EXPECT_EQ(OwnTools(loop).tools.types_of("f", "a"), types::kUnknown);
}

/// Answers whose calls never end, or are deeper or longer than the memory, come out whole as text.
TEST(HostileAnswers, AreTextInTheMemoryThatThereIs) {
  std::string deep = "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": " + std::string(2500, '[');
  std::string pairs = "<tool_call>now", tags = "<tool_call><function=now>", opened;
  for (int i = 0; i < 300; ++i) {
    pairs += "<arg_key>a</arg_key>";
    tags += "<parameter=";
    opened += "<tool_call>";
  }
  const std::string backslashes = "<tool_call>{\"name\": \"" + std::string(2500, '\\') + "\"}</tool_call>",
                    name = "<tool_call>" + std::string(2500, 'a') + "</tool_call>";
  for (const std::string& answer : {deep, pairs, tags, opened, backslashes, name}) {
    for (const std::string_view chat_template : {kHermes, kCoder, kGlm}) {
      for (const std::size_t size : {1, 100}) {
        Reading reading(marks_of(chat_template, false), tools(), {}, Reader::kLeastMemory);
        for (std::size_t at = 0; at < answer.size(); at += size) {
          reading.text(std::string_view(answer).substr(at, size));
        }
        const std::vector<Said> parts = reading.end();
        EXPECT_TRUE(parts == only(text(answer))) << answer.substr(0, 60) << " with " << chat_template;
      }
    }
  }
}

TEST(HostileAnswers, OfAMegabyteStayInTheMemory) {
  const Marks marks = marks_of(kHermes, false);
  Reading reading(marks, tools(), {}, Reader::kLeastMemory);
  std::size_t size = 0;
  const std::string begin = "<tool_call>{\"name\": \"set\", \"arguments\": {\"any\": \"", piece(1000, 'x');
  reading.text(begin);
  size += begin.size();
  for (int i = 0; i < 1000; ++i, size += piece.size()) reading.text(piece);
  reading.text("\"}}</tool_call>");
  size += 15;
  const std::vector<Said> parts = reading.end();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts.front().kind, AnswerPart::text);
  EXPECT_EQ(parts.front().text.size(), size);
}

TEST(HostileAnswers, OfAnyBytesLoseNothing) {
  std::uint32_t seed = 1;
  const auto next = [&] { return seed = seed * 1664525 + 1013904223; };
  for (int round = 0; round < 300; ++round) {
    std::string answer;
    for (int i = 0; i < 200; ++i) answer += static_cast<char>(next() >> 24);
    Reading reading(marks_of(kHermes, false), tools());
    reading.text(answer);
    const std::vector<Said> parts = reading.end();
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts.front().text, answer);
  }
}

}  // namespace
}  // namespace qsf::answers::test
