// Models of several streams: what a session gives of them at once, a layer that is skipped, and tokens without a row of
// their own among the layers' inputs.
#include "engine/host.h"
#include "engine/variants.h"
#include "file/small_file.h"

namespace qsf::test {
namespace {

SmallOptions of_streams() {
  for (const Named& variant : variants()) {
    LayerKind kind;
    if (variant.options.shape) variant.options.shape(0, kind);
    if (kind.streams > 2) return variant.options;
  }
  ADD_FAILURE() << "no variant has streams";
  return {};
}

/// Logits of all positions.
std::vector<float> logits_of(const std::vector<std::byte>& file, const std::vector<std::uint32_t>& tokens,
                             std::optional<std::uint32_t> skipped = {}) {
  OpenOptions options = with_logits();
  options.chunk = 5;
  if (skipped) options.observe = Observe::layers;
  Host host(file, 16 * kMiB, options);
  EXPECT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  if (skipped) host.session->skip_layer(skipped);
  const Generation run = host.generate(all_logits(tokens, 0));
  EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
  return run.logits;
}

TEST(Streams, TokensWithoutARowOfInputsUseTheFirst) {
  const SmallOptions small = of_streams();
  constexpr std::uint32_t kRows = 30;
  const std::vector<std::uint32_t> tokens = some_tokens(23, small.vocab_size);
  ASSERT_TRUE(std::ranges::any_of(tokens, [](std::uint32_t token) { return token >= kRows; }));
  SmallFile whole, part;
  const FileSpec all_rows = small_source(small, whole);
  FileSpec fewer_rows = small_source(small, part);
  std::vector<float>& table = whole.weights.at({0, Role::layer_embd});
  const std::size_t width = table.size() / small.vocab_size;
  for (std::size_t row = kRows; row < small.vocab_size; ++row) std::copy_n(&table[0], width, &table[row * width]);
  std::ranges::find(fewer_rows.tensors, Role::layer_embd, &TensorSpec::role)->rows = kRows;
  ASSERT_TRUE(write_file(all_rows, memory_sink(whole.bytes), {}));
  ASSERT_TRUE(write_file(fewer_rows, memory_sink(part.bytes), {}));
  EXPECT_LT(part.bytes.size(), whole.bytes.size());
  EXPECT_EQ(logits_of(part.bytes, tokens), logits_of(whole.bytes, tokens));
}

TEST(Streams, ASkippedLayerChangesNoStream) {
  const SmallOptions small = of_streams();
  const SmallFile file = small_file(small);
  const std::vector<std::uint32_t> tokens = some_tokens(23, small.vocab_size);
  // The second layer has no LAuReL, which would scale the stream. Without factors it predicts what there is.
  const SmallFile without = small_file(small, [](SmallFile& changed) {
    for (const Role role :
         {Role::stream_predict, Role::layer_input_post_norm, Role::attn_post_norm, Role::ffn_post_norm}) {
      std::ranges::fill(changed.weights.at({2, role}), 0.0f);
    }
  });
  EXPECT_EQ(logits_of(file.bytes, tokens, 1), logits_of(without.bytes, tokens));
  EXPECT_NE(logits_of(file.bytes, tokens), logits_of(without.bytes, tokens));
}

TEST(Streams, LogitsAndHiddenStatesOfOnePassAreThoseOfTwo) {
  const SmallOptions small = of_streams();
  const SmallFile file = small_file(small);
  const std::vector<std::uint32_t> a = some_tokens(11, small.vocab_size), b = some_tokens(7, small.vocab_size, 9);
  OpenOptions options = with_logits();
  options.sequences = 2;
  options.chunk = 32;
  EmbedPrompt prompt;
  prompt.tokens = b;
  prompt.pooling = Pooling::none;
  const std::vector<float> hidden = Host(file.bytes, 16 * kMiB, options).embed(prompt).embedding;
  const Generation alone = Host(file.bytes, 16 * kMiB, options).generate(greedy(a, 6));
  Host host(file.bytes, 16 * kMiB, options);
  ASSERT_TRUE(host.session->start(greedy(a, 6), 0));
  ASSERT_TRUE(host.session->embed(prompt, 1));
  std::vector<float> together;
  for (int i = 0; i < 2; ++i) {
    const Generation run = host.pump();
    together.insert(together.end(), run.embedding.begin(), run.embedding.end());
  }
  EXPECT_EQ(host.session->logits_hash(0), alone.hash);
  EXPECT_EQ(together, hidden);
}

}  // namespace
}  // namespace qsf::test
