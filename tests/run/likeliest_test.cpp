// The selection against sorting everything.
#include "run/likeliest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "support/seeded.h"

namespace qsf::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Kind {
  const char* name;
  float (*logit)(Random& random);
};
constexpr Kind kKinds[] = {
    {"all different", [](Random& random) { return 20 * random.symmetric(); }},
    {"many equals", [](Random& random) { return static_cast<float>(random.below(5)) - 2; }},
    {"all equal", [](Random&) { return -3.5f; }},
    {"one bucket", [](Random& random) { return 100 + random.symmetric(); }},
    {"signed zeros", [](Random& random) { return random.below(3) == 0 ? -0.0f : 0.0f; }},
    {"denormals", [](Random& random) { return random.symmetric() * 0x1p-126f; }},
    {"mostly minus infinity", [](Random& random) { return random.below(50) == 0 ? random.symmetric() : -kInfinity; }},
    {"minus infinity", [](Random&) { return -kInfinity; }},
    {"the ends",
     [](Random& random) {
       constexpr float kEnds[] = {-kInfinity, std::numeric_limits<float>::lowest(), 0.0f,
                                  std::numeric_limits<float>::max(), kInfinity};
       return kEnds[random.below(5)];
     }},
};

TEST(Likeliest, IsWhatSortingGives) {
  for (const Kind& kind : kKinds) {
    for (const std::size_t n : {1u, 32u, 1000u, 128256u}) {
      Random random(n);
      std::vector<float> logits(n);
      for (float& logit : logits) logit = kind.logit(random);
      std::vector<Candidate> sorted;
      for (std::uint32_t id = 0; id < n; ++id) {
        if (logits[id] != -kInfinity) sorted.push_back({logits[id], id});
      }
      std::sort(sorted.begin(), sorted.end(),
                [](auto& a, auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
      std::vector<Candidate> scratch(n);
      for (const std::size_t m :
           {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{40}, n / 2, n - 1, n, 9 * n}) {
        const std::span<const Candidate> found = likeliest(logits, m, scratch);
        ASSERT_EQ(found.size(), std::min(m, sorted.size())) << kind.name;
        for (std::size_t i = 0; i < found.size(); ++i) {
          ASSERT_EQ(found[i].id, sorted[i].id) << kind.name << ", " << m << " of " << n;
          ASSERT_EQ(found[i].logit, sorted[i].logit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace qsf::test
