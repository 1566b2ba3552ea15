// What a session tells of the columns that enter its products: calibration's measure.
#include <cmath>

#include "engine/host.h"
#include "engine/variants.h"
#include "file/small_file.h"

namespace qsf::test {
namespace {

struct Seen {
  std::uint32_t section;
  Role role;
  std::uint64_t n;
  std::vector<double> sums;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> observe(const testing::SmallFile& file, std::uint32_t chunk, const std::vector<std::uint32_t>& tokens,
                          bool stream_all, Generation& run) {
  OpenOptions options;
  options.observe = true;
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
    out.push_back({o.section, o.role, o.n, {o.sums.begin(), o.sums.end()}});
  }
  return out;
}

TEST(Observe, SumsDoNotDependOnChunksOrStreaming) {
  const testing::SmallFile file = testing::small_file({});
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
  const testing::SmallOptions options;
  const testing::SmallFile file = testing::small_file(options);
  const std::vector<std::uint32_t> tokens = some_tokens(9, 40);
  const std::vector<float>& embedding = file.weights.at({0, Role::token_embd});
  const std::vector<float>& norm = file.weights.at({1, Role::attn_norm});
  std::vector<double> sums(std::size_t{options.dim} * options.dim);
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
      for (std::uint32_t j = 0; j <= i; ++j) sums[i * options.dim + j] += x[i] * x[j];
    }
  }
  Generation run;
  for (const Seen& seen : observe(file, 4, tokens, false, run)) {
    EXPECT_EQ(seen.n, tokens.size());
    if (seen.section != 1 || (seen.role != Role::attn_q && seen.role != Role::attn_v)) continue;
    ASSERT_EQ(seen.sums.size(), sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(seen.sums[i], sums[i], 1e-4) << i;
  }
}

}  // namespace
}  // namespace qsf::test
