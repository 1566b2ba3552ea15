#include "qsf/chat/answer_parts.h"

#include "chat/talking_model.h"
#include "tests/support/error_of.h"

namespace qsf::chat::test {
namespace {

using qsf::test::Host;
using qsf::test::kMiB;
using qsf::test::SmallFile;

constexpr std::string_view kQwen =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% if think %}<think>\n{% endif %}{% endif %}"
    "{# <tool_call></tool_call> <think></think> #}";
constexpr std::string_view kWithTools =
    R"({"messages":[{"role":"user","content":"<think>"}],"add_generation_prompt":true,)"
    R"("tools":[{"type":"function","function":{"name":"add","parameters":{"properties":{"n":{"type":"integer"}}}}}]})";

/// Reads answers of one model, whose parts are joined: "kind: text" in each line.
class Answers {
 public:
  explicit Answers(std::string_view chat_template)
      : file_(talking_model(chat_template)), host_(file_.bytes, 8 * kMiB, {}) {}

  std::string read(std::string_view marked, std::string_view values = kWithTools, std::string_view more = {},
                   std::span<const std::string_view> stops = {}) {
    Session& session = *host_.session;
    const TextMemory memory = AnswerParts::divide(session.text_memory());
    const Conversation conversation{.values = values, .more = more};
    const Result<AnswerForm> form = AnswerForm::read(session, conversation, memory.conversations);
    EXPECT_TRUE(form) << form.error().sentence;
    Result<AnswerParts> parts = AnswerParts::open(session, *form, conversation, memory.conversations, memory.parts);
    EXPECT_TRUE(parts) << parts.error().sentence;
    const auto tokens = tokenize(session, conversation, memory.conversations);
    EXPECT_TRUE(tokens) << tokens.error().sentence;
    if (!form || !parts || !tokens) return {};
    EXPECT_TRUE(parts->begin(tokens->rendered, stops));
    std::ranges::fill(memory.conversations, std::byte{0xCC});  // it is free during the answer
    said_.clear();
    kind_ = AnswerPart::arguments;
    const PartSink sink{this, [](void* to, const Part& part) { static_cast<Answers*>(to)->add(part); }};
    for (const std::uint32_t id : ids_of(marked)) parts->token(id, sink);
    parts->end(sink);
    return said_;
  }
  Session& session() { return *host_.session; }

 private:
  void add(const Part& part) {
    if (part.kind != kind_ || part.kind == AnswerPart::call) {
      said_ += (said_.empty() ? "" : "|") + std::string(kPartNames[static_cast<std::size_t>(part.kind)]) + ":";
    }
    kind_ = part.kind;
    said_ += part.text;
  }

  SmallFile file_;
  Host host_;
  std::string said_;
  AnswerPart kind_ = AnswerPart::arguments;
};

TEST(AnswerParts, AreToldApartByTokens) {
  Answers answers(kQwen);
  EXPECT_EQ(answers.read("#8hm\n#9\n\nyes #6\n{\"name\":\"add\",\"arguments\":{\"n\":2}}\n#7#6{\"name\":\"add\"}#7"),
            "thought:hm|text:yes|call:add|arguments:{\"n\":2}|call:add|arguments:{}");
}

TEST(AnswerParts, HaveTheWordsOfMarksAsText) {
  Answers answers(kQwen);
  EXPECT_EQ(answers.read("a <think> b </think> <tool_call>"), "text:a <think> b </think> <tool_call>");
  EXPECT_EQ(answers.read("#8a </think> b#9c"), "thought:a </think> b|text:c");
}

TEST(AnswerParts, HaveNoCallsWithoutTools) {
  Answers answers(kQwen);
  EXPECT_EQ(answers.read("#6{\"name\":\"add\"}#7", kHello), "text:<tool_call>{\"name\":\"add\"}</tool_call>");
  EXPECT_EQ(answers.read("#6{\"name\":\"add\"}#7", kHello, R"({"tools":[{"name":"add"}]})"), "call:add|arguments:{}");
  EXPECT_EQ(answers.read("{\"name\":\"add\",\"arguments\":{}}"), "call:add|arguments:{}");
  EXPECT_EQ(answers.read("{\"name\":\"sub\",\"arguments\":{}}"), "text:{\"name\":\"sub\",\"arguments\":{}}");
}

TEST(AnswerParts, FollowAThoughtThatTheTemplateOpened) {
  Answers answers(kQwen);
  EXPECT_EQ(answers.read("hm#9\nyes", kHello, R"({"think":true})"), "thought:hm|text:yes");
  EXPECT_EQ(answers.read("hm", kHello, R"({"think":true})"), "thought:hm") << "it never ends";
  EXPECT_EQ(answers.read("hm#9yes"), "text:hm</think>yes") << "in a message it is not the template's";
}

TEST(AnswerParts, FollowHeaders) {
  Answers answers("{{ messages[0].content }}<|start|>assistant{# <|channel|>final<|message|> #}");
  EXPECT_EQ(answers.read("#3analysis#4hm#2assistant#3final#4yes"), "thought:hm|text:yes");
  EXPECT_EQ(answers.read("#3commentary to=functions.add #4{\"n\":2}"), "call:add|arguments:{\"n\":2}");
  EXPECT_EQ(answers.read("yes"), "text:yes") << "a model that writes no header";
}

TEST(AnswerParts, EndAtStopStrings) {
  Answers answers(kQwen);
  constexpr std::array<std::string_view, 1> kStops{"stop"};
  EXPECT_EQ(answers.read("go on, stop here", kHello, {}, kStops), "text:go on, ");
  EXPECT_EQ(answers.read("go st#8op", kHello, {}, kStops), "text:go st|thought:op") << "none continues after a mark";
  const std::array<std::string_view, 1> long_one{std::string_view(kQwen).substr(0, 65)};
  const TextMemory memory = AnswerParts::divide(answers.session().text_memory());
  const auto form = AnswerForm::read(answers.session(), {}, memory.conversations);
  ASSERT_TRUE(form);
  auto parts = AnswerParts::open(answers.session(), *form, {.values = kHello}, memory.conversations, memory.parts);
  ASSERT_TRUE(parts);
  EXPECT_EQ(error_of(parts->begin({}, long_one)).code, ErrorCode::bad_argument);
}

TEST(AnswerParts, DropTheSpaceThatTheTemplateWrites) {
  Answers spaced("{% for m in messages %}[I]{{ m.content }}[/I] {% endfor %}");
  EXPECT_EQ(spaced.read(" yes", kHello), "text: yes") << "the template writes a space after a message";
  Answers before("{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}[assistant]");
  EXPECT_EQ(before.read(" yes", kHello), "text:yes");
  EXPECT_EQ(before.read("  yes", kHello), "text: yes");
}

TEST(AnswerParts, NameWhatTheyNeed) {
  Answers answers(kQwen);
  const TextMemory memory = AnswerParts::divide(answers.session().text_memory());
  const auto form = AnswerForm::read(answers.session(), {}, memory.conversations);
  ASSERT_TRUE(form);
  int refused = 0;
  for (std::size_t size = 0; size < 20'000; size += 61) {
    const auto parts = AnswerParts::open(answers.session(), *form, {.values = kWithTools}, memory.conversations,
                                         memory.parts.subspan(size % 16, std::min(size, memory.parts.size() - 16)));
    if (parts) continue;
    ++refused;
    EXPECT_EQ(parts.error().code, ErrorCode::out_of_memory) << parts.error().sentence;
  }
  EXPECT_GT(refused, 50);
  EXPECT_LT(refused, 320);
  const std::string_view wrong = R"({"tools": [}, "messages": []})";
  EXPECT_EQ(
      error_of(AnswerParts::open(answers.session(), *form, {.values = wrong}, memory.conversations, memory.parts)).code,
      ErrorCode::bad_input);
}

}  // namespace
}  // namespace qsf::chat::test
