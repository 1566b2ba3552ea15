// A long text that is read ends when the host wants no more, as everything does between two steps.
#include <atomic>
#include <string>

#include "engine/host.h"
#include "engine/variants.h"
#include "qsf/text/tokenizer_builder.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

TEST(Cancel, EndsReadingALongText) {
  TokenizerSource source;
  source.kind = TokenizerKind::spm_bpe;
  source.tokens = {{"<unk>", 0, TokenType::unknown}, {"a"}, {"\u2581"}};
  while (source.tokens.size() < 40) source.tokens.push_back({"", 0, TokenType::unused});
  SmallOptions small;
  small.tokenizer = *build_tokenizer(source);
  const SmallFile file = small_file(small);
  std::atomic<bool> cancel{false};
  OpenOptions options;
  options.cancel = &cancel;
  Host host(file.bytes, 8 * kMiB, options);
  std::string text;
  while (text.size() < 1'000'000) text += "a a a";
  std::vector<std::uint32_t> ids(text.size());
  const Result<std::uint32_t> whole = host.session->tokenize(text, false, ids);
  ASSERT_TRUE(whole) << whole.error().sentence;
  EXPECT_EQ(*whole, text.size());

  ASSERT_EQ(host.generate(greedy(std::vector<std::uint32_t>{1, 2}, 2)).tokens.size(), 2u);
  const auto before = host.session->tokens().size();
  cancel = true;
  EXPECT_EQ(error_of(host.session->tokenize(text, false, ids)).code, ErrorCode::cancelled);
  Prompt prompt = greedy({}, 2);
  prompt.text = text;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::cancelled);
  EXPECT_EQ(host.session->tokens().size(), before);  // nothing of it was taken
  EmbedPrompt embedding;
  embedding.text = text;
  EXPECT_EQ(error_of(host.session->embed(embedding)).code, ErrorCode::cancelled);
  // A short text is read at once, whatever the flag says: its end is for the host to see.
  prompt.text = "a a";
  EXPECT_TRUE(host.session->start(prompt));
  cancel = false;
  prompt.text = text;
  EXPECT_EQ(error_of(host.session->start(prompt)).code, ErrorCode::context_full);
}

}  // namespace
}  // namespace qsf::test
