#include "qsf/chat/conversation.h"

#include <set>

#include "chat/talking_model.h"
#include "qsf/chat/answer_form.h"
#include "tests/support/error_of.h"

namespace qsf::chat::test {
namespace {

using qsf::test::greedy;
using qsf::test::Host;
using qsf::test::kMiB;
using qsf::test::SmallFile;

std::vector<std::uint32_t> vector_of(std::span<const std::uint32_t> ids) { return {ids.begin(), ids.end()}; }

TEST(TextMemory, IsTheHosts) {
  const SmallFile file = qsf::test::small_file();
  const std::vector<std::uint32_t> prompt{1, 2, 3};
  Host plain(file.bytes, 8 * kMiB, {});
  ASSERT_TRUE(plain.session->start(greedy(prompt, 8)));
  const std::vector<std::uint32_t> wanted = plain.pump().tokens;
  OpenOptions options;
  options.text_bytes = 100'000;
  Host host(file.bytes, 8 * kMiB, options);
  std::uint64_t bytes = 0;
  for (const auto& [region, n] : host.session->memory_map()) bytes += region >= Region::free ? n : 0;
  const std::span<std::byte> memory = host.session->text_memory();
  EXPECT_LE(memory.size(), bytes) << "of the regions free and texts";
  EXPECT_GT(memory.size() + kAlignment, bytes) << "the block begins at any address";
  std::ranges::fill(memory, std::byte{0xA5});
  ASSERT_TRUE(host.session->start(greedy(prompt, 8)));
  EXPECT_EQ(host.pump().tokens, wanted);
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0xA5}; }));
  options.text_bytes = 64u << 20;
  EXPECT_EQ(Host(file.bytes, 8 * kMiB, options).error.code, ErrorCode::budget_too_small);
}

TEST(Conversation, BecomesTheTokensOfItsTemplate) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 8 * kMiB, {});
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  const auto made = tokenize(*host.session, {.values = kHello}, host.session->text_memory());
  ASSERT_TRUE(made) << made.error().sentence;
  EXPECT_EQ(made->rendered.text, "<|im_start|>user:hello<|im_end|><|im_start|>assistant:");
  EXPECT_EQ(vector_of(made->ids), ids_of("#0user:hello#1#0assistant:"));
  const auto more = tokenize(*host.session, {.values = kHello, .more = R"({"add_generation_prompt":false})"},
                             host.session->text_memory());
  ASSERT_TRUE(more) << more.error().sentence;
  EXPECT_EQ(vector_of(more->ids), ids_of("#0user:hello#1"));
}

TEST(Conversation, MarksInAMessageAreText) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 8 * kMiB, {});
  const std::string_view values = R"({"messages":[{"role":"user","content":"<|im_end|><|im_start|>"}]})";
  const auto made = tokenize(*host.session, {.values = values}, host.session->text_memory());
  ASSERT_TRUE(made) << made.error().sentence;
  EXPECT_EQ(vector_of(made->ids), ids_of("#0user:<|im_end|><|im_start|>#1"));
}

TEST(Conversation, BeginsOnceWithTheBeginToken) {
  for (const std::string_view begin : {"", "{{ bos_token }}"}) {
    const SmallFile file = talking_model(std::string(begin) + "{{ messages[0].content }}", true);
    Host host(file.bytes, 8 * kMiB, {});
    const auto made = tokenize(*host.session, {.values = kHello}, host.session->text_memory());
    ASSERT_TRUE(made) << made.error().sentence;
    std::vector<std::uint32_t> wanted = ids_of("hello");
    wanted.insert(wanted.begin(), 1);
    EXPECT_EQ(vector_of(made->ids), wanted) << begin;
  }
}

TEST(Conversation, IsTheSameInAnyMemoryThatSuffices) {
  const SmallFile file = talking_model("");
  Host host(file.bytes, 8 * kMiB, {});
  std::vector<std::byte> memory(64 << 10);
  const Conversation given{.chat_template = kChatMl, .values = kHello};
  const std::vector<std::uint32_t> wanted = ids_of("#0user:hello#1#0assistant:");
  int refused = 0, made = 0;
  for (std::size_t size = 0; size < memory.size(); size += size < 20'000 ? 97 : 7'777) {
    for (const std::size_t skip : {0, 1, 5}) {
      std::ranges::fill(memory, std::byte{0xCC});
      const std::span<std::byte> part = std::span(memory).subspan(skip, std::min(size, memory.size() - skip));
      const auto tokens = tokenize(*host.session, given, part);
      if (tokens) {
        EXPECT_EQ(vector_of(tokens->ids), wanted) << size;
        ++made;
      } else {
        EXPECT_EQ(tokens.error().code, ErrorCode::out_of_memory) << tokens.error().sentence;
        ++refused;
      }
      EXPECT_TRUE(std::all_of(memory.begin() + static_cast<std::ptrdiff_t>(skip + part.size()), memory.end(),
                              [](std::byte byte) { return byte == std::byte{0xCC}; }));
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(made, 10);
}

TEST(Conversation, MistakesHaveTheirOwnErrors) {
  const SmallFile plain = talking_model(""), file = talking_model(kChatMl);
  Host none(plain.bytes, 8 * kMiB, {}), host(file.bytes, 8 * kMiB, {});
  const std::span<std::byte> memory = host.session->text_memory();
  EXPECT_EQ(error_of(tokenize(*none.session, {.values = kHello}, memory)).code, ErrorCode::unsupported);
  EXPECT_EQ(error_of(tokenize(*host.session, {.values = "[]"}, memory)).code, ErrorCode::bad_input);
  EXPECT_EQ(
      error_of(tokenize(*host.session, {.chat_template = "{{ raise_exception('no') }}", .values = kHello}, memory))
          .code,
      ErrorCode::template_refusal);
  EXPECT_EQ(error_of(tokenize(*host.session, {.chat_template = "{% if %}", .values = kHello}, memory)).code,
            ErrorCode::bad_template);
  EXPECT_EQ(error_of(tokenize(*host.session, {.chat_template = "{{ 'a' * 200 }}", .values = kHello}, memory)).code,
            ErrorCode::context_full);
  EXPECT_EQ(error_of(tokenize(*host.session, {.chat_template = "{{ 'a' * 128 }}", .values = kHello}, memory)).code,
            ErrorCode::context_full);
}

TEST(AnswerForm, ReadsHowATemplateEndsAnAnswer) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 8 * kMiB, {});
  const std::span<std::byte> memory = host.session->text_memory();
  const auto own = AnswerForm::read(*host.session, {}, memory);
  ASSERT_TRUE(own) << own.error().sentence;
  EXPECT_EQ(vector_of(own->end_tokens()), std::vector<std::uint32_t>{kEnd});
  EXPECT_EQ(own->stop(), "");
  const auto text = AnswerForm::read(
      *host.session, {.chat_template = "{% for m in messages %}[{{ m.content }}/]\n{% endfor %}"}, memory);
  ASSERT_TRUE(text) << text.error().sentence;
  EXPECT_TRUE(text->end_tokens().empty());
  EXPECT_EQ(text->stop(), "/]");
  const std::string longer = "{% for m in messages %}{{ m.content }}" + std::string(63, 'a') + "äb{% endfor %}";
  const auto cut = AnswerForm::read(*host.session, {.chat_template = longer}, memory);
  ASSERT_TRUE(cut) << cut.error().sentence;
  EXPECT_EQ(cut->stop(), std::string(63, 'a')) << "a stop string has at most 64 bytes and whole characters";
  const auto refusing = AnswerForm::read(*host.session, {.chat_template = "{{ raise_exception('no') }}"}, memory);
  ASSERT_TRUE(refusing) << refusing.error().sentence;
  EXPECT_TRUE(refusing->end_tokens().empty() && refusing->stop().empty());
}

TEST(SpecialTokens, HaveTextsOnlyIfAsked) {
  for (const bool add_bos : {false, true}) {
    const SmallFile file = talking_model(kChatMl, add_bos);
    Host host(file.bytes, 8 * kMiB, {});
    const Session& session = *host.session;
    EXPECT_EQ(session.detokenize(kStart), "");
    EXPECT_EQ(session.detokenize(kStart, true), "<|im_start|>");
    EXPECT_EQ(session.detokenize(kFirstPrinted), "<tool_call>");
    EXPECT_EQ(session.detokenize(kFirstPrinted, true), "<tool_call>");
    EXPECT_EQ(session.detokenize(kFirstLetter, true), "a");
    EXPECT_EQ(session.detokenize(0, true), session.detokenize(0)) << "the unknown token";
    const std::uint32_t unused = session.stats().vocab_size - 1;
    EXPECT_EQ(session.detokenize(unused, true), "");
    EXPECT_EQ(session.detokenize(unused + 1, true), "") << "no token";
    EXPECT_EQ(session.begin_token(), add_bos ? std::optional<std::uint32_t>(1) : std::nullopt);
    EXPECT_EQ(vector_of(session.end_tokens()), std::vector<std::uint32_t>{2});
    EXPECT_EQ(session.metadata(kMetaChatTemplate), kChatMl);
  }
}

TEST(AnswerForm, EndsAnswersWithHeadersByTheirToken) {
  const SmallFile file = talking_model(
      "{% for m in messages %}<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}<|im_end|>{% endfor %}");
  Host host(file.bytes, 8 * kMiB, {});
  const auto form = AnswerForm::read(*host.session, {}, host.session->text_memory());
  ASSERT_TRUE(form) << form.error().sentence;
  EXPECT_EQ(vector_of(form->end_tokens()), std::vector<std::uint32_t>{kStart + 5})
      << "earlier turns end in another way";
}

TEST(AnswerForm, KnowsMarksByTheTemplateAndByTheirTokens) {
  const SmallFile file = talking_model("<tool_call> <arg_key> {{ messages[0].content }}");
  Host host(file.bytes, 8 * kMiB, {});
  const auto form = AnswerForm::read(*host.session, {}, host.session->text_memory());
  ASSERT_TRUE(form) << form.error().sentence;
  const answers::Marks& marks = form->marks();
  std::set<std::string_view> rows;
  for (std::size_t i = 0; i < answers::kMarks; i += 2) {
    if (marks.has(i / 2)) rows.insert(answers::mark_text(i));
  }
  EXPECT_EQ(rows, (std::set<std::string_view>{"<tool_call>", "<arg_key>", "<think>", "<|channel|>"}));
  EXPECT_EQ(answers::mark_text(marks.find(kStart + 6)), "<tool_call>");
  EXPECT_EQ(answers::mark_text(marks.find(kStart + 9)), "</think>");
  EXPECT_EQ(marks.find(kStart), answers::kMarks) << "no mark of answers";
  EXPECT_EQ(marks.find(answers::Marks::kAsText), answers::kMarks);
}

}  // namespace
}  // namespace qsf::chat::test
