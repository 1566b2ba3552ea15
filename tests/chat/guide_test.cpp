#include "qsf/chat/guide.h"

#include <regex>

#include "chat/talking_model.h"
#include "tests/support/error_of.h"

namespace qsf::chat::test {
namespace {

using qsf::test::Host;
using qsf::test::kMiB;
using qsf::test::SmallFile;

OpenOptions with_texts(std::uint32_t bytes) {
  OpenOptions options;
  options.text_bytes = bytes;
  return options;
}

/// Returns the text of a generation that the guide holds.
std::string guided(Host& host, Guide& guide, std::uint64_t seed, std::uint32_t n) {
  Session& session = *host.session;
  Prompt prompt;
  const std::vector<std::uint32_t> ids = ids_of("once");
  prompt.tokens = ids;
  prompt.max_tokens = n;
  prompt.sampler.seed = seed;
  prompt.sampler.top_k = 0;
  prompt.sampler.top_p = 1;
  EXPECT_TRUE(session.rewind(0));
  EXPECT_TRUE(guide.begin({}));
  prompt.allowed = guide.allowed();
  EXPECT_TRUE(session.start(prompt));
  std::size_t known = session.tokens().size();
  host.stop_when = [&] {
    if (session.tokens().size() <= known) return false;
    known = session.tokens().size();
    return !guide.follow(session.token());
  };
  const std::string text = host.pump().text;
  host.stop_when = {};
  return text;
}

TEST(Guide, HoldsGenerationsOfSeveralGrammars) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 24 * kMiB, with_texts(12u << 20));
  Result<Guide> guide = Guide::build(*host.session, host.session->text_memory());
  ASSERT_TRUE(guide) << guide.error().sentence;
  for (std::uint64_t seed = 1; seed < 5; ++seed) {
    ASSERT_TRUE(guide->set({GrammarKind::regex, "(yes|no), (king|queen)"}));
    EXPECT_TRUE(std::regex_match(guided(host, *guide, seed, 40), std::regex("(yes|no), (king|queen)")));
    ASSERT_TRUE(guide->set({GrammarKind::gbnf, "root ::= [a-c] [0-9] \"z\""}));
    EXPECT_TRUE(std::regex_match(guided(host, *guide, seed, 40), std::regex("[a-c][0-9]z")));
    ASSERT_TRUE(guide->set({GrammarKind::json_schema, R"({"enum":["a","bc"]})"}));
    EXPECT_TRUE(std::regex_match(guided(host, *guide, seed, 60), std::regex(R"re(\s?"(a|bc)"\s*)re")));
  }
}

TEST(Guide, ATextWithoutAWayOnIsReported) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 24 * kMiB, with_texts(12u << 20));
  Result<Guide> guide = Guide::build(*host.session, host.session->text_memory());
  ASSERT_TRUE(guide) << guide.error().sentence;
  ASSERT_TRUE(guide->set({GrammarKind::json_schema, R"({"type":"string","pattern":"^a$","minLength":2})"}));
  ASSERT_TRUE(guide->begin({}));
  ASSERT_TRUE(guide->follow(ids_of("\"").front()));
  EXPECT_EQ(error_of(guide->follow(ids_of("a").front())).code, ErrorCode::bad_input);
}

TEST(Guide, WritesIntegersWithoutAPoint) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 24 * kMiB, with_texts(12u << 20));
  Result<Guide> guide = Guide::build(*host.session, host.session->text_memory());
  ASSERT_TRUE(guide) << guide.error().sentence;
  ASSERT_TRUE(guide->set({GrammarKind::json_schema, R"({"type":"integer"})"}));
  ASSERT_TRUE(guide->begin({}));
  ASSERT_TRUE(guide->follow(ids_of("7").front()));
  const std::uint32_t point = ids_of(".").front();
  EXPECT_EQ(guide->allowed()[point / 64] >> point % 64 & 1, 0u);
  std::vector<std::byte> memory(grammar::Grammar::kMemory);
  Result<grammar::Grammar> exact = make_grammar({GrammarKind::json_schema, R"({"type":"integer"})"}, memory);
  ASSERT_TRUE(exact && *exact->accept("7.0"));
}

// A text without a choice is expected, as far as the session guesses.
TEST(Guide, ExpectsATextWithoutAChoice) {
  const SmallFile file = talking_model(kChatMl);
  OpenOptions options = with_texts(12u << 20);
  options.guesses = 4;
  Host host(file.bytes, 24 * kMiB, options), plain(file.bytes, 24 * kMiB, with_texts(12u << 20));
  Result<Guide> guide = Guide::build(*host.session, host.session->text_memory());
  Result<Guide> none = Guide::build(*plain.session, plain.session->text_memory());
  ASSERT_TRUE(guide && none);
  const auto expected = [](const Guide& of) {
    return std::vector(of.expected()->ids.begin(), of.expected()->ids.begin() + of.expected()->n);
  };
  ASSERT_TRUE(guide->set({GrammarKind::regex, "(yes|no), queens?"}) && none->set({GrammarKind::regex, "yes"}));
  ASSERT_TRUE(guide->begin({}) && none->begin({}));
  EXPECT_EQ(none->expected()->n, 0u) << "nothing is guessed";
  EXPECT_EQ(expected(*guide), ids_of(""));
  // Each token of the expected ones leaves the others; after the last one the text is looked at again.
  const std::vector<std::string> after{"es, ", "s, ", ", ", " ", "quee", "uee", "ee", "e", "n", "", ""};
  const std::string text = "yes, queens";
  for (std::size_t i = 0; i < text.size(); ++i) {
    ASSERT_TRUE(guide->follow(ids_of(text.substr(i, 1)).front()));
    EXPECT_EQ(expected(*guide), ids_of(after[i])) << i;
  }
}

TEST(Guide, RefusesTokensThatItDidNotAllow) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 24 * kMiB, with_texts(12u << 20));
  Result<Guide> guide = Guide::build(*host.session, host.session->text_memory());
  ASSERT_TRUE(guide) << guide.error().sentence;
  ASSERT_TRUE(guide->set({GrammarKind::regex, "ab"}));
  ASSERT_TRUE(guide->begin(std::vector<std::uint32_t>{kEnd}));
  const std::vector<std::uint32_t> ab = ids_of("ab");
  const auto allows = [&](std::uint32_t id) { return (guide->allowed()[id / 64] >> id % 64 & 1) != 0; };
  EXPECT_TRUE(allows(ab[0]) && !allows(ab[1]) && !allows(kEnd));
  EXPECT_EQ(error_of(guide->follow(ab[1])).code, ErrorCode::bad_token);
  ASSERT_TRUE(guide->follow(ab[0]));
  ASSERT_TRUE(guide->follow(ab[1]));
  EXPECT_TRUE(!allows(ab[0]) && !allows(ab[1]) && allows(kEnd)) << "the text is over, and only an end may follow";
  EXPECT_EQ(error_of(guide->begin(std::vector<std::uint32_t>(9, kEnd))).code, ErrorCode::bad_argument);
  EXPECT_EQ(error_of(guide->set({GrammarKind::json_schema, R"({"uniqueItems":true})"})).code, ErrorCode::unsupported);
}

TEST(Guide, LeavesTheBeginningOfItsMemoryAndNamesWhatItNeeds) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 8 * kMiB, {});
  std::vector<std::byte> memory(4 << 20);
  const auto guide = Guide::build(*host.session, memory);
  ASSERT_TRUE(guide) << guide.error().sentence;
  EXPECT_EQ(guide->free().data(), memory.data());
  EXPECT_GE(guide->free().size(), 256u << 10);
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 20}) {
    const Error error = error_of(Guide::build(*host.session, std::span(memory).first(size)));
    EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    EXPECT_NE(std::string_view(error.sentence).find("see text_bytes"), std::string_view::npos) << error.sentence;
  }
}

TEST(Guide, HoldsSeveralTextsAtOnceInEqualShares) {
  const SmallFile file = talking_model(kChatMl);
  Host host(file.bytes, 8 * kMiB, {});
  std::vector<std::byte> memory(6 << 20);
  const auto built = Guide::build(*host.session, memory, 5);
  ASSERT_TRUE(built) << built.error().sentence;
  ASSERT_EQ(built->shares(), 3u) << "as many as have room for a small grammar";
  EXPECT_EQ(Guide::build(*host.session, memory, 2)->shares(), 2u);
  EXPECT_EQ(Guide::build(*host.session, memory)->shares(), 1u);
  EXPECT_EQ(Guide::build_for_thoughts(*host.session, memory, 5)->shares(), 5u);
  EXPECT_GE(built->free().size(), 256u << 10);

  const std::vector<std::string> texts{"ababab", "cdecde", "xyxyxy"}, patterns{"(ab)*", "(cde)*", "(xy)*"};
  std::vector<Guide> guides;
  for (std::uint32_t i = 0; i < 3; ++i) {
    guides.push_back(built->in_share(i));
    ASSERT_TRUE(guides[i].set({GrammarKind::regex, patterns[i]}));
    ASSERT_TRUE(guides[i].begin(std::vector<std::uint32_t>{kEnd}));
  }
  for (std::size_t at = 0; at < 6; ++at) {
    for (std::size_t i = 0; i < 3; ++i) {
      for (const std::string& text : texts) {
        const std::uint32_t id = ids_of(text.substr(at, 1)).front();
        EXPECT_EQ(guides[i].allowed()[id / 64] >> id % 64 & 1, text == texts[i] ? 1u : 0u) << at << text;
      }
      ASSERT_TRUE(guides[i].follow(ids_of(texts[i].substr(at, 1)).front()));
    }
  }

  std::string large = "root ::= ";
  for (int i = 0; i < 40'000; ++i) large += (i == 0 ? "\"" : " | \"") + std::to_string(i * 7919) + "\"";
  const auto refusal = [&](std::uint32_t most) {
    auto guide = Guide::build(*host.session, memory, most);
    const Error error = error_of(guide->set({GrammarKind::gbnf, large}));
    EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    return std::string(error.sentence);
  };
  EXPECT_TRUE(refusal(5).ends_with("; 3 texts at once have equal shares: see text_bytes and sequences")) << refusal(5);
  EXPECT_TRUE(refusal(1).ends_with(" bytes of memory that it may use: see text_bytes")) << refusal(1);
}

}  // namespace
}  // namespace qsf::chat::test
