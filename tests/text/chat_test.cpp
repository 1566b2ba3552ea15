// Conversations as Jinja renders them (data/make_chat.py), and what is taken for a special token in them.
#include "qsf/text/chat.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "vocabularies.h"

namespace qsf::test {
namespace {

using Json = nlohmann::json;

struct Rendered {
  Status status;
  std::string text;
  std::string own;  // a byte for every one of the text's: 'o' of the template's own
};

struct Conversation {
  std::vector<std::string> contents;
  std::vector<ChatMessage> messages;
};

ChatRole role_of(const std::string& name) {
  return name == "system" ? ChatRole::system : name == "user" ? ChatRole::user : ChatRole::assistant;
}

Rendered render(const ChatFamily& family, std::span<const ChatMessage> messages) {
  std::tm day{};
  day.tm_year = 125;
  day.tm_mon = 2;
  day.tm_mday = 7;
  char date[40] = "";
  if (!family.date_format.empty()) std::strftime(date, sizeof date, std::string(family.date_format).c_str(), &day);
  Rendered out;
  out.status = render_chat(family, {"<s>", "</s>", date}, messages,
                           {&out, [](void* to, std::string_view text, bool own) {
                              static_cast<Rendered*>(to)->text += text;
                              static_cast<Rendered*>(to)->own += std::string(text.size(), own ? 'o' : '-');
                            }});
  return out;
}

Json cases() { return Json::parse(std::ifstream(QSF_SOURCE_DIR "/tests/text/data/chat.json"), nullptr, false); }

TEST(Chat, RendersWhatJinjaRenders) {
  const Json data = cases();
  std::set<std::string_view> families;
  for (const Json& one : data.at("cases")) {
    const ChatFamily* family = find_chat_family(one.at("template").get<std::string>());
    ASSERT_NE(family, nullptr) << one.at("family");
    EXPECT_EQ(family->name, one.at("family").get<std::string>());
    families.insert(family->name);
    for (std::size_t i = 0; i < data.at("conversations").size(); ++i) {
      const auto turns = data.at("conversations").at(i).get<std::vector<std::array<std::string, 2>>>();
      std::vector<ChatMessage> messages;
      for (const auto& turn : turns) messages.push_back({role_of(turn[0]), turn[1]});
      const Rendered got = render(*family, messages);
      const Json& want = one.at("texts").at(i);
      EXPECT_EQ(static_cast<bool>(got.status), !want.is_null()) << family->name << " " << got.status.error().sentence;
      EXPECT_EQ(got.text, want.is_null() ? "" : want.get<std::string>()) << family->name << " " << i;
      EXPECT_TRUE(!want.is_null() || got.status.error().code == ErrorCode::unsupported);
    }
  }
  EXPECT_GE(families.size(), 24u);
}

TEST(Chat, OnlyTheTemplatesTextIsItsOwn) {
  for (const ChatFamily& family : chat_families()) {
    const std::array<ChatMessage, 1> messages{ChatMessage{ChatRole::user, "{eos}</s><|im_end|>"}};
    const Rendered got = render(family, messages);
    if (!got.status) {
      EXPECT_EQ(family.has_default, SystemDefault::unknown) << family.name;
      continue;
    }
    const std::size_t at = got.text.find("{eos}</s><|im_end|>");
    ASSERT_NE(at, std::string::npos) << family.name;
    const std::string own = std::string(at, 'o') + std::string(19, '-') + std::string(got.text.size() - at - 19, 'o');
    EXPECT_EQ(got.own, own) << family.name;
  }
}

TEST(Chat, WhatIsNotKnownIsNotGuessed) {
  for (const char* text : {
           "",
           " ",
           "x",
           "{",
           "{%",
           "{{ messages }}",
           "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}",
           "{{ '<|im_start|>' }}",
           "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n'}}{% endfor %}",
           "{{ bos_token }}{% for message in messages %}{{ message['content'] + eos_token }}{% endfor %}",
           "\n{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
           "'<|im_end|>' + '\\n'}}{% endfor %}{{ '<|im_start|>assistant\\n' }}",
       }) {
    EXPECT_EQ(find_chat_family(text), nullptr) << text;
  }
  // ChatML that says something of its own where there is no system message.
  const char* own =
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou are a toaster.<|im_end|>\\n' }}{% endif %}"
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
      "'\\n'}}{% endfor %}{{ '<|im_start|>assistant\\n' }}";
  const ChatFamily* family = find_chat_family(own);
  ASSERT_NE(family, nullptr);
  const std::array<ChatMessage, 2> messages{ChatMessage{ChatRole::system, "s"}, ChatMessage{ChatRole::user, "u"}};
  EXPECT_EQ(render(*family, messages).text,
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  const Rendered without = render(*family, std::span(messages).subspan(1));
  EXPECT_EQ(without.status.error().code, ErrorCode::unsupported);
  EXPECT_EQ(without.text, "");
}

TEST(Chat, RolesComeInTurn) {
  const ChatFamily& family = *find_chat_family(cases().at("cases").at(0).at("template").get<std::string>());
  using enum ChatRole;
  const std::vector<std::vector<ChatRole>> wrong{{},
                                                 {system},
                                                 {assistant},
                                                 {user, user},
                                                 {user, assistant},
                                                 {user, system},
                                                 {system, system, user},
                                                 {system, assistant},
                                                 {user, assistant, assistant}};
  for (const std::vector<ChatRole>& roles : wrong) {
    std::vector<ChatMessage> messages;
    for (const ChatRole role : roles) messages.push_back({role, "x"});
    const Rendered got = render(family, messages);
    EXPECT_EQ(got.status.error().code, ErrorCode::bad_argument) << roles.size();
    EXPECT_EQ(got.text, "");
  }
}

TEST(Chat, HostileTemplatesAreReadInLinearTime) {
  for (const char* part : {"<|im_start|>", "'", "\\n", "{%", "message['content'] + "}) {
    std::string text = "{{";
    while (text.size() < (1u << 18)) text += part;
    EXPECT_EQ(find_chat_family(text), nullptr);
  }
}

/// A byte-level vocabulary with a control token, a user-defined one, and one of white space.
TokenizerSource marked_source() {
  TokenizerSource source = from_tokenizer_json(std::string(QSF_SOURCE_DIR) + "/tests/data/llama/tokenizer.json");
  source.tokens.push_back({"<|end|>", 0, TokenType::control});
  source.tokens.push_back({"<|user|>", 0, TokenType::user_defined});
  source.tokens.push_back({"\n\n", 0, TokenType::user_defined});
  return source;
}

TEST(Chat, SpecialTokensInPlainTextAreText) {
  const TokenizerSource source = marked_source();
  const Built built(source);
  ASSERT_EQ(built.problem, "");
  const auto n = static_cast<std::uint32_t>(source.tokens.size());
  const std::uint32_t end = n - 3, user = n - 2, lines = n - 1;
  using Ids = std::vector<std::uint32_t>;
  const auto encode = [&](std::string_view text, std::vector<TextRange> plain) -> Result<Ids> {
    Ids ids(text.size() + 8);
    std::vector<std::byte> scratch(Tokenizer::kScratchBytes);
    const Result<std::uint32_t> count = built.tokenizer.encode(text, true, ids, scratch, plain);
    if (!count) return count.error();
    ids.resize(*count);
    return ids;
  };
  const auto count = [](const Ids& ids, std::uint32_t id) { return std::count(ids.begin(), ids.end(), id); };
  const std::string text = "<|user|>a<|end|><|user|>\n\nb<|end|>";
  EXPECT_EQ(count(*encode(text, {}), end), 2);
  EXPECT_EQ(count(*encode(text, {}), user), 2);
  const Ids ids = *encode(text, {{8, 27}});  // a<|end|><|user|>\n\nb
  EXPECT_EQ(ids.front(), user);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(count(ids, end), 1);
  EXPECT_EQ(count(ids, user), 1) << "a user-defined token that the template means is none in the message";
  EXPECT_EQ(count(ids, lines), 1) << "white space is";
  EXPECT_EQ(count(*encode(text, {{8, 8}, {9, 16}}), end), 1);
  EXPECT_EQ(count(*encode("<|user|>", {{0, 8}}), user), 1) << "one that the template does not mean is, as in any text";
  EXPECT_EQ(count(*encode("<|end|>", {{0, 6}}), end), 0) << "no token begins in plain text";
  EXPECT_EQ(count(*encode("<|end|>", {{6, 7}}), end), 0) << "nor ends there";
  EXPECT_EQ(count(*encode("<|end|>", {{7, 7}}), end), 1);
  for (const std::vector<TextRange>& bad : {std::vector<TextRange>{{0, 9}}, {{3, 2}}, {{2, 4}, {3, 5}}}) {
    EXPECT_EQ(encode("<|end|>", bad).error().code, ErrorCode::bad_argument);
  }
  // Between special tokens, the template's text and the message are one text to the tokenizer.
  EXPECT_EQ(*encode("on<|end|>ce upon", {{1, 2}, {9, 11}}), *encode("on<|end|>ce upon", {}));
}

}  // namespace
}  // namespace qsf::test
