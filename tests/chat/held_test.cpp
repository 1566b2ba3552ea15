// Answers that a guide holds: calls of tools, a text after thoughts, and the length of thoughts. Tokens are letters.
#include <nlohmann/json.hpp>
#include <regex>

#include "chat/talking_model.h"
#include "qsf/chat/guide.h"
#include "tests/support/error_of.h"

namespace qsf::chat::test {
namespace {

using qsf::test::Host;
using qsf::test::kMiB;
using qsf::test::SmallFile;

/// A template whose calls are `call`.
std::string with_calls(const std::string& call, const std::string& prompt = "<|im_start|>assistant:") {
  return "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' + m.content }}{% for c in m.tool_calls %}" + call +
         "{% endfor %}<|im_end|>{% endfor %}{% if add_generation_prompt %}" + prompt + "{% endif %}";
}
const std::string kHermes = with_calls(
    "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson "
    "}}}\n</tool_call>");
const std::string kThinking = with_calls(
    "<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ "
    "c.function.arguments | tojson }}}</tool_call>{# <think> #}",
    "<|im_start|>assistant:<think>\n");
constexpr std::string_view kTwoTools =
    R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":true,"tools":[)"
    R"({"type":"function","function":{"name":"add","parameters":{"properties":{"n":{"$ref":"#/$defs/small"}},)"
    R"("required":["n"],"additionalProperties":false,"$defs":{"small":{"type":"integer","minimum":0,"maximum":99}}}}},)"
    R"({"type":"function","function":{"name":"now"}}]})";

class Held {
 public:
  explicit Held(std::string_view chat_template)
      : file_(talking_model(chat_template)), host_(file_.bytes, 24 * kMiB, options()) {}

  Session& session() { return *host_.session; }
  void whole() { take(Guide::build(session(), session().text_memory())); }
  void thoughts() { take(Guide::build_for_thoughts(session(), session().text_memory())); }
  Guide& guide() { return *guide_; }
  Status hold(const CallRules& rules) { return guide_->set_calls({.values = kTwoTools}, rules); }

  void begin() {
    const TextMemory memory = AnswerParts::divide(guide_->free());
    const Conversation conversation{.values = kTwoTools};
    const Result<AnswerForm> form = AnswerForm::read(session(), conversation, memory.conversations);
    ASSERT_TRUE(form) << form.error().sentence;
    const auto parts = AnswerParts::open(session(), *form, conversation, memory.conversations, memory.parts);
    ASSERT_TRUE(parts) << parts.error().sentence;
    parts_.emplace(*parts);
    const auto tokens = tokenize(session(), conversation, memory.conversations);
    ASSERT_TRUE(tokens) << tokens.error().sentence;
    ids_.assign(tokens->ids.begin(), tokens->ids.end());
    ASSERT_TRUE(parts_->begin(tokens->rendered, {}));
    const Status begun = guide_->begin(std::vector<std::uint32_t>{kEnd}, &*parts_);
    ASSERT_TRUE(begun) << begun.error().sentence;
  }
  Status token(std::uint32_t id) {
    parts_->token(id, sink());
    return guide_->follow(id);
  }
  /// Gives tokens, all of which must be allowed.
  void say(std::string_view marked) {
    for (const std::uint32_t id : ids_of(marked)) {
      ASSERT_TRUE(allows(id)) << id << " in " << marked;
      const Status followed = token(id);
      ASSERT_TRUE(followed) << followed.error().sentence;
    }
  }
  bool allows(std::uint32_t id) const { return (guide_->allowed()[id / 64] >> id % 64 & 1) != 0; }
  bool allows(std::string_view one) const { return allows(ids_of(one).front()); }
  /// The letters and marks that are allowed, as ids_of() reads them, and $ for the end.
  std::string allowed() const {
    std::string out = allows(kEnd) ? "$" : "";
    for (std::uint32_t id = kStart; id < kFirstLetter; ++id) {
      if (allows(id) && id != kEnd) out += "#" + std::to_string(id - kStart);
    }
    for (std::size_t i = 0; i < kLetters.size(); ++i) {
      if (allows(kFirstLetter + static_cast<std::uint32_t>(i))) out += kLetters[i];
    }
    return out;
  }
  /// Generates an answer and returns its parts, each as a line "kind text".
  std::string generate(std::uint64_t seed, std::uint32_t n) {
    said_.clear();
    EXPECT_TRUE(session().rewind(0));
    begin();
    Prompt prompt;
    prompt.tokens = ids_;
    prompt.max_tokens = n;
    prompt.sampler.seed = seed;
    prompt.sampler.top_k = 0;
    prompt.sampler.top_p = 1;
    prompt.end_tokens = kEnds;
    prompt.allowed = guide_->allowed();
    EXPECT_TRUE(session().start(prompt));
    std::size_t known = session().tokens().size();
    host_.stop_when = [&] {
      if (session().tokens().size() <= known) return false;
      known = session().tokens().size();
      return !token(session().token());
    };
    (void)host_.pump();
    host_.stop_when = {};
    parts_->end(sink());
    return said_;
  }

 private:
  static constexpr std::uint32_t kEnds[] = {kEnd};
  static OpenOptions options() {
    OpenOptions options;
    options.text_bytes = 12u << 20;
    return options;
  }
  void take(const Result<Guide>& built) {
    ASSERT_TRUE(built) << built.error().sentence;
    guide_.emplace(*built);
  }
  PartSink sink() {
    return {this, [](void* to, const Part& part) {
              static_cast<Held*>(to)->said_ +=
                  std::string(kPartNames[static_cast<std::size_t>(part.kind)]) + " " + std::string(part.text) + "\n";
            }};
  }

  SmallFile file_;
  Host host_;
  std::optional<Guide> guide_;
  std::optional<AnswerParts> parts_;
  std::vector<std::uint32_t> ids_;
  std::string said_;
};

TEST(HeldCalls, FreeTextIsFreeUntilACallBegins) {
  Held held(kHermes);
  held.whole();
  ASSERT_TRUE(held.hold({}));
  held.begin();
  EXPECT_TRUE(held.allows("z") && held.allows("#6") && held.allows(kEnd));
  held.say("so <#6");
  EXPECT_EQ(held.allowed(), "{") << "a call is an object";
  held.say("{\"name\": \"");
  EXPECT_EQ(held.allowed(), "an") << "add, now";
  held.say("add\", \"arguments\": {");
  EXPECT_EQ(held.allowed(), " \"\n") << "n is required";
  held.say("\"n\": 1");
  EXPECT_FALSE(held.allows(".")) << "an integer";
  held.say("2");
  EXPECT_FALSE(held.allows("3")) << "at most 99, by a reference inside of the schema";
  held.say("}");
  EXPECT_FALSE(held.allows("z") || held.allows(kEnd));
  held.say("}");
  EXPECT_EQ(held.allowed(), "\n") << "the closing mark as the template writes it";
  held.say("\n#7");
  EXPECT_TRUE(held.allows("z") && held.allows("#6") && held.allows(kEnd));
  held.say(" and #6{\"name\": \"now\", \"arguments\": {");
  EXPECT_EQ(held.allowed(), " }\n") << "no parameters";
}

TEST(HeldCalls, RequiredCallsComeFirstAndFollowTheirSchemas) {
  Held held(kHermes);
  held.whole();
  const std::regex add("call add\narguments \\{\"n\":([0-9]|[1-9][0-9])\\}\n"), now("call now\narguments \\{\\}\n");
  ASSERT_TRUE(held.hold({.required = true}));
  held.guide().limit_thoughts(0);
  for (std::uint64_t seed = 1; seed < 7; ++seed) {
    const std::string said = held.generate(seed, 90);
    EXPECT_TRUE(std::regex_search(said, add, std::regex_constants::match_continuous) ||
                std::regex_search(said, now, std::regex_constants::match_continuous))
        << said;
  }
  ASSERT_TRUE(held.hold({.required = true, .only = "now"}));
  for (std::uint64_t seed = 1; seed < 4; ++seed) {
    EXPECT_TRUE(std::regex_search(held.generate(seed, 90), now, std::regex_constants::match_continuous));
  }
}

TEST(HeldCalls, ACallWithoutMarksIsHeldFromItsNameOn) {
  Held held(with_calls("{\"name\": \"{{ c.function.name }}\", \"parameters\": {{ c.function.arguments | tojson }}}"));
  held.whole();
  ASSERT_TRUE(held.hold({}));
  held.begin();
  held.say("{\"name\": \"ad");
  EXPECT_TRUE(held.allows("z")) << "a name of something else is text";
  held.say("d\"");
  EXPECT_EQ(held.allowed(), " ,\n");
  held.say(", \"parameters\": {\"n\": 1}}");
  EXPECT_TRUE(held.allows(kEnd));
  EXPECT_TRUE(held.allows("{") && !held.allows("[")) << "another call is an object too";
  held.begin();
  held.say("{\"name\": \"bob\", \"age\": 4}");
  ASSERT_TRUE(held.hold({.required = true}));
  held.begin();
  EXPECT_EQ(held.allowed(), "#8{") << "a thought may come first";
}

TEST(HeldCalls, NamesAndArgumentsWithTextBetween) {
  Held held(with_calls("<tool_call>call:{{ c.function.name }}\n{{ c.function.arguments | tojson }}</tool_call>"));
  held.whole();
  ASSERT_TRUE(held.hold({.required = true}));
  held.begin();
  EXPECT_EQ(held.allowed(), "#6#8");
  held.say("#6call:");
  EXPECT_EQ(held.allowed(), "an");
  held.say("add");
  EXPECT_EQ(held.allowed(), "\n");
  held.say("\n");
  EXPECT_EQ(held.allowed(), "{");
  held.say("{\"n\": 7}#7");
  EXPECT_TRUE(held.allows(kEnd) && held.allows("#6"));
  held.say("#6");
  EXPECT_EQ(held.allowed(), "c") << "another call is held too";
}

TEST(HeldCalls, OtherArgumentsAreFreeAfterTheName) {
  Held held(with_calls("<tool_call>[{{ c.function.name }}=qsf_key]</tool_call>"));
  held.whole();
  ASSERT_TRUE(held.hold({}));
  held.begin();
  held.say("ok #6");
  EXPECT_EQ(held.allowed(), "[");
  held.say("[now");
  EXPECT_EQ(held.allowed(), "=");
  held.say("=");
  EXPECT_TRUE(held.allows("z"));
}

TEST(HeldCalls, AThoughtComesBeforeARequiredCall) {
  Held held(kThinking);
  held.whole();
  ASSERT_TRUE(held.hold({.required = true}));
  held.begin();
  EXPECT_TRUE(held.allows("z") && !held.allows(kEnd));
  held.say("hm#9");
  EXPECT_EQ(held.allowed(), "#6");
}

TEST(HeldCalls, MistakesAreReportedBefore) {
  Held without{kChatMl};
  without.whole();
  EXPECT_EQ(error_of(without.hold({})).code, ErrorCode::unsupported);
  Held last{R"({% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for t in m.tool_calls or [] %}<tool_call>
{"name": {{ t.function.name|tojson }}, "arguments": {{ t.function.arguments|tojson }}}
</tool_call>{% endfor %}{% endfor %}{{ tools|tojson }}<assistant>)"};
  last.whole();
  EXPECT_EQ(error_of(last.hold({})).code, ErrorCode::unsupported) << "tools after the messages";
  Held held(kHermes);
  held.whole();
  EXPECT_EQ(error_of(held.hold({.required = true, .only = "none"})).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(held.guide().set_calls({.values = R"({"messages":[]})"}, {})).code, ErrorCode::bad_argument);
  const Error refused = error_of(held.guide().set_calls(
      {.values = R"({"tools":[{"name":"f","parameters":{"properties":{"a":{"uniqueItems":true}}}}]})"}, {}));
  EXPECT_EQ(refused.code, ErrorCode::unsupported);
  EXPECT_NE(std::string_view(refused.sentence).find("uniqueItems"), std::string_view::npos) << refused.sentence;
}

TEST(HeldText, BeginsAfterTheThought) {
  Held held(kThinking);
  held.whole();
  ASSERT_TRUE(held.guide().set({GrammarKind::regex, "yes"}));
  held.begin();
  EXPECT_TRUE(held.allows("z") && held.allows("#9") && !held.allows(kEnd));
  held.say("no, no#9");
  EXPECT_EQ(held.allowed(), "y \n") << "white space after a thought is no part of the text";
  held.say("\n");
  EXPECT_EQ(held.allowed(), "y");
  held.say("yes");
  EXPECT_EQ(held.allowed(), "$");
}

TEST(HeldText, AThoughtMayComeFirst) {
  Held held(with_calls("", "<|im_start|>assistant:") + "{# <think> #}");
  held.whole();
  ASSERT_TRUE(held.guide().set({GrammarKind::regex, "yes"}));
  held.begin();
  EXPECT_EQ(held.allowed(), "#8y");
  held.say("#8");
  EXPECT_TRUE(held.allows("z"));
  held.say("z#9y");
  EXPECT_EQ(held.allowed(), "e");
  held.begin();
  held.say("yes");
  EXPECT_EQ(held.allowed(), "$");
  held.guide().limit_thoughts(0);
  held.begin();
  EXPECT_EQ(held.allowed(), "y");
}

TEST(HeldThoughts, EndAfterTheirTokens) {
  Held held(kThinking);
  held.thoughts();
  held.guide().limit_thoughts(3);
  held.begin();
  held.say("ab");
  EXPECT_TRUE(held.allows("z") && held.allows("#9"));
  held.say("c");
  EXPECT_EQ(held.allowed(), "#9");
  held.say("#9");
  EXPECT_TRUE(held.allows("z") && held.allows(kEnd));
  held.guide().limit_thoughts(0);
  held.begin();
  EXPECT_EQ(held.allowed(), "#9");
  held.guide().limit_thoughts(Guide::kUnlimited);
  held.begin();
  held.say("abcdefghij");
  EXPECT_TRUE(held.allows("z") && held.allows(kEnd));
}

}  // namespace
}  // namespace qsf::chat::test
