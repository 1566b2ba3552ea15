// What a session tells of the columns that enter its products: calibration's measure.
#include <cmath>

#include "engine/host.h"
#include "engine/variants.h"
#include "file/small_file.h"

namespace qsf::test {
namespace {

struct Seen {
  std::uint32_t stage;
  Role role;
  std::uint64_t n;
  std::vector<float> sums;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> observe(const SmallFile& file, std::uint32_t chunk, const std::vector<std::uint32_t>& tokens,
                          bool stream_all, Generation& run) {
  OpenOptions options;
  options.observe = Observe::products;
  std::vector<std::vector<float>> room;
  options.observed_room = {[](void* owner, std::uint64_t n) {
                             auto& all = *static_cast<std::vector<std::vector<float>>*>(owner);
                             return all.emplace_back(n).data();
                           },
                           &room};
  options.all_logits = true;
  options.chunk = chunk;
  options.stream_all = stream_all;
  Host host(file.bytes, 16 * kMiB, options);
  Prompt prompt;
  prompt.tokens = tokens;
  prompt.max_tokens = 0;
  prompt.all_logits = true;
  run = host.generate(prompt);
  EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
  std::vector<Seen> out;
  for (const Observed& o : host.session->observed()) {
    out.push_back({o.stage, o.role, o.n, {o.sums.begin(), o.sums.end()}});
  }
  return out;
}

TEST(Observe, SumsDoNotDependOnChunksOrStreaming) {
  const SmallFile file = small_file({});
  const std::vector<std::uint32_t> tokens = some_tokens(23, 40);
  Generation whole, parts;
  const std::vector<Seen> all = observe(file, 32, tokens, false, whole);
  EXPECT_EQ(all.size(), 2u * 7 + 1);
  for (const std::uint32_t chunk : {1u, 3u, 8u}) {
    EXPECT_EQ(observe(file, chunk, tokens, chunk == 3, parts), all) << chunk;
    EXPECT_EQ(parts.logits, whole.logits);
  }
}

TEST(Observe, FirstProductSeesTheNormedEmbeddings) {
  const SmallOptions options;
  const SmallFile file = small_file(options);
  const std::vector<std::uint32_t> tokens = some_tokens(9, 40);
  const std::vector<float>& embedding = file.weights.at({0, Role::token_embd});
  const std::vector<float>& norm = file.weights.at({1, Role::attn_norm});
  std::vector<double> sums(observed_sums(options.dim, options.dim));
  for (const std::uint32_t token : tokens) {
    std::vector<double> x(options.dim);
    double squares = 0;
    for (std::uint32_t i = 0; i < options.dim; ++i) {
      x[i] = double{embedding[token * options.dim + i]};
      squares += x[i] * x[i];
    }
    for (std::uint32_t i = 0; i < options.dim; ++i) {
      x[i] *= double{norm[i]} / std::sqrt(squares / options.dim + double{1e-5f});
    }
    for (std::uint32_t i = 0; i < options.dim; ++i) {
      for (std::uint32_t j = 0; j <= i; ++j) sums[observed_row(i, options.dim) + j] += x[i] * x[j];
    }
  }
  Generation run;
  for (const Seen& seen : observe(file, 4, tokens, false, run)) {
    EXPECT_EQ(seen.n, tokens.size());
    if (seen.stage != 1 || (seen.role != Role::attn_q && seen.role != Role::attn_v)) continue;
    ASSERT_EQ(seen.sums.size(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(seen.sums[i], sums[i], 1e-4) << i;
  }
}

std::vector<float> hidden_of(Host& host, std::uint32_t token) {
  EXPECT_TRUE(host.session->rewind(0));
  EmbedPrompt prompt;
  prompt.tokens = {&token, 1};
  prompt.pooling = Pooling::none;
  const Generation run = host.embed(prompt);
  EXPECT_EQ(run.error.code, ErrorCode::none) << run.error.sentence;
  return run.embedding;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return ab / std::sqrt(aa * bb);
}

// Behind a norm without weights of its own, hidden states point to where the residual does.
TEST(Observe, CosinesOfLayers) {
  const SmallOptions small;
  SmallFile file;
  const FileSpec source = small_source(small, file);
  std::ranges::fill(file.weights.at({small.n_layers + 1, Role::final_norm}), 1.0f);
  ASSERT_TRUE(write_file(source, memory_sink(file.bytes), {}));
  OpenOptions options;
  options.observe = Observe::layers;
  Host host(file.bytes, 16 * kMiB, options);
  const std::vector<float>& embedding = file.weights.at({0, Role::token_embd});
  double first = 0, second = 0;
  std::uint64_t n = 0;
  for (const std::uint32_t token : some_tokens(7, small.vocab_size)) {
    const std::vector<float> end = hidden_of(host, token);
    const std::span<const ObservedLayer> layers = host.session->observed_layers();
    ASSERT_EQ(layers.size(), 2u);
    EXPECT_EQ(layers[0].n, 2 * n + 1);
    const double one = layers[0].cosines - first, two = layers[1].cosines - second;
    host.session->skip_layer(1);
    const std::vector<float> middle = hidden_of(host, token);
    host.session->skip_layer({});
    EXPECT_NEAR(one, cosine(std::span(embedding).subspan(token * small.dim, small.dim), middle), 1e-6);
    EXPECT_NEAR(two, cosine(middle, end), 1e-6);
    EXPECT_LT(one, 0.9999);
    first = layers[0].cosines;
    second = layers[1].cosines;
    ++n;
  }
}

TEST(Observe, ASkippedLayerAddsNothing) {
  const std::vector<std::uint32_t> tokens = some_tokens(23, 40);
  Prompt prompt;
  prompt.tokens = tokens;
  prompt.max_tokens = 0;
  prompt.all_logits = true;
  for (const std::uint32_t layer : {0u, 1u}) {
    SmallFile without;
    const FileSpec source = small_source({}, without);
    const SmallFile file = small_file({});
    for (const Role role : {Role::attn_o, Role::ffn_down})
      std::ranges::fill(without.weights.at({layer + 1, role}), 0.0f);
    ASSERT_TRUE(write_file(source, memory_sink(without.bytes), {}));
    OpenOptions options;
    options.all_logits = true;
    const Generation expected = Host(without.bytes, 16 * kMiB, options).generate(prompt);
    options.observe = Observe::layers;
    options.chunk = 5;
    for (const bool stream_all : {false, true}) {
      options.stream_all = stream_all;
      Host host(file.bytes, 16 * kMiB, options);
      const Generation whole = host.generate(prompt);
      host.session->skip_layer(layer);
      EXPECT_TRUE(host.session->rewind(0));
      const Generation run = host.generate(prompt);
      EXPECT_EQ(run.logits, expected.logits) << layer << stream_all;
      EXPECT_NE(run.logits, whole.logits);
    }
  }
}

}  // namespace
}  // namespace qsf::test
