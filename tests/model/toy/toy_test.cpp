// A model whose first layer has the toy: its role has a higher number than any other and is used before them.
#include <cmath>

#include "engine/host.h"
#include "file/small_file.h"

namespace qsf::test {
namespace {

constexpr Role kToy = static_cast<Role>(200);

SmallOptions with_toy() {
  SmallOptions o;
  o.shape = [](std::uint32_t layer, LayerKind& kind) {
    if (layer != 1) kind.mixer = Mixer::toy;
  };
  o.n_layers = 3;
  return o;
}

TEST(Toy, IsComputed) {
  SmallOptions o = with_toy();
  o.n_layers = 1;
  o.shape = [](std::uint32_t, LayerKind& kind) {
    kind.mixer = Mixer::toy;
    kind.ffn = Ffn::none;
  };
  const SmallFile file = small_file(o);
  OpenOptions options;
  options.all_logits = true;
  Host host(file.bytes, 8 * kMiB, options);
  ASSERT_EQ(host.error.code, ErrorCode::none) << host.error.sentence;
  const std::vector<std::uint32_t> ids{7};
  Prompt prompt = greedy(ids, 0);
  prompt.all_logits = true;
  const Generation run = host.generate(prompt);
  ASSERT_EQ(run.logits.size(), o.vocab_size);

  const auto weight = [&](std::uint32_t stage, Role role) { return file.weights.at({stage, role}); };
  const auto norm = [&](std::vector<double> x, const std::vector<float>& w) {
    double sum = 0;
    for (const double e : x) sum += e * e / o.dim;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= double{w[i]} / std::sqrt(sum + 1e-5);
    return x;
  };
  const auto product = [&](const std::vector<float>& w, const std::vector<double>& x) {
    std::vector<double> y(w.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += double{w[r * x.size() + c]} * x[c];
    }
    return y;
  };
  const std::vector<float> embedding = weight(0, Role::token_embd);
  std::vector<double> x(embedding.begin() + 7 * o.dim, embedding.begin() + 8 * o.dim);
  const std::vector<double> y = product(weight(1, kToy), norm(x, weight(1, Role::attn_norm)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i] * y[i];
  const std::vector<double> logits = product(embedding, norm(x, weight(2, Role::final_norm)));
  for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(double{run.logits[i]}, logits[i], 1e-4);
}

TEST(Toy, StreamsEverySegmentOncePerPass) {
  const SmallFile file = small_file(with_toy());
  const std::vector<std::uint32_t> ids{1, 2, 3};
  const std::string resident = Host(file.bytes, 8 * kMiB, {}).generate(greedy(ids, 20)).hash;
  OpenOptions options;
  options.stream_all = true;
  options.ring_slots = 2;
  Host host(file.bytes, 8 * kMiB, options);
  EXPECT_EQ(host.generate(greedy(ids, 1)).hash.size(), 64u);
  std::uint64_t pass = 0;
  for (std::uint32_t i = 0; i < host.session->segments().size(); ++i) {
    if (!host.session->is_pinned(i)) pass += host.session->segments()[i].stored_size;
  }
  const std::uint64_t before = host.session->stats().bytes_read;
  ASSERT_TRUE(host.session->rewind(0));
  EXPECT_EQ(host.generate(greedy(ids, 20)).hash, resident);
  // 20 passes, and the rows that are looked up besides.
  const std::uint64_t read = host.session->stats().bytes_read - before;
  EXPECT_LT(read, pass * 20 * 3 / 2);
  EXPECT_GE(read, pass * 19);
}

}  // namespace
}  // namespace qsf::test
