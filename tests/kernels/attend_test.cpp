// The cache and attention over it, against double precision on what the cache holds, and at guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "kernels/cases.h"

namespace qsf::test {
namespace {

class AttendTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

std::vector<float> unit_values(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = random.symmetric();
  return values;
}

// One head's cache whose memory ends at unreadable pages.
struct Cache {
  Cache(KvType type, std::uint32_t capacity, std::uint32_t head_dim)
      : type(type),
        head_dim(head_dim),
        codes(std::size_t{capacity} * head_dim * kv_code_bytes(type)),
        scales(capacity * sizeof(float)),
        head{codes.data(), scales.as<float>()} {}

  double value(std::uint32_t slot, std::uint32_t d) const {
    const std::size_t at = std::size_t{slot} * head_dim + d;
    if (type == KvType::f32) return static_cast<double>(codes.as<float>()[at]);
    if (type == KvType::f16) return static_cast<double>(f16_to_f32(codes.as<f16>()[at]));
    return static_cast<double>(scales.as<float>()[slot]) * codes.as<std::int8_t>()[at];
  }

  KvType type;
  std::uint32_t head_dim;
  Guarded codes;
  Guarded scales;
  KvHead head;
};

TEST_P(AttendTest, StoresHalfFloatsRoundedToEven) {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          65504.0f,
                          65519.0f,
                          65520.0f,
                          1e30f,
                          -1e30f,
                          0x1p-24f,
                          0x1p-25f,
                          0x1.8p-25f,
                          -0x1p-26f,
                          0x1p-14f,
                          6.1e-5f,
                          1.00048828125f,
                          1.00146484375f,
                          std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(),
                          -std::numeric_limits<float>::quiet_NaN(),
                          1e-45f};
  Random random(3);
  while (x.size() < 4000) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next())));
  const auto n = static_cast<std::uint32_t>(x.size());
  const Cache cache(KvType::f16, 1, n);
  kernels().kv_store[0](x.data(), n, cache.head, 0);
  for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(cache.codes.as<f16>()[i], f32_to_f16(x[i])) << x[i];
}

TEST_P(AttendTest, StoresInt8UnderOneScale) {
  for (const std::uint32_t head_dim : {2u, 16u, 30u, 64u, 100u}) {
    const Cache cache(KvType::q8, 3, head_dim);
    const std::vector<float> x = unit_values(head_dim, head_dim);
    kernels().kv_store[1](x.data(), head_dim, cache.head, 2);
    float amax = 0.0f;
    for (const float v : x) amax = std::max(amax, std::fabs(v));
    EXPECT_EQ(cache.scales.as<float>()[2], amax / 127.0f);
    for (std::uint32_t d = 0; d < head_dim; ++d) {
      EXPECT_EQ(cache.codes.as<std::int8_t>()[2 * head_dim + d], std::nearbyint(x[d] * (127.0f / amax)));
    }
  }
}

TEST_P(AttendTest, StoresFloatsAsTheyAre) {
  const Cache cache(KvType::f32, 2, 30);
  const std::vector<float> x = unit_values(30, 1);
  kernels().kv_store[2](x.data(), 30, cache.head, 1);
  EXPECT_TRUE(std::equal(x.begin(), x.end(), cache.codes.as<float>() + 30));
}

// Scores: a dot of head_dim products in 16 lanes and two scalings, ceil(head_dim / 16) + 7 roundings of e = 2^-24 on
// the sum of magnitudes, an absolute error s of every score; so p is off by the factor e^(2s) and the softmax's own
// roundings. The weighted sum then rounds count + 3 times on the sum of magnitudes.
TEST_P(AttendTest, AgreesWithDoublePrecision) {
  for (const KvType type : {KvType::f16, KvType::q8, KvType::f32}) {
    const auto kv = static_cast<std::size_t>(type);
    for (const std::uint32_t head_dim : {2u, 10u, 16u, 64u, 72u, 128u}) {
      for (const std::uint32_t count : {1u, 5u, 16u, 23u}) {
        const std::uint32_t capacity = 23;
        const std::uint32_t first = 40;  // wraps: 40 % 23 = 17
        const Cache k(type, capacity, head_dim);
        const Cache v(type, capacity, head_dim);
        for (std::uint32_t position = first; position < first + capacity; ++position) {
          kernels().kv_store[kv](unit_values(head_dim, position).data(), head_dim, k.head, position % capacity);
          kernels().kv_store[kv](unit_values(head_dim, position + 99).data(), head_dim, v.head, position % capacity);
        }
        const Guarded q(head_dim * sizeof(float));
        const Guarded scores(count * sizeof(float));
        const Guarded out(head_dim * sizeof(float));
        q.fill(std::span<const float>(unit_values(head_dim, 1)));
        const float scale = 2.0f;
        kernels().attend[kv]({q.as<float>(), k.head, v.head, head_dim, capacity, first, count, scale,
                              scores.as<float>(), out.as<float>()});
        std::vector<double> p(count);
        double most = -1e300;
        double score_error = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
          double magnitudes = 0;
          for (std::uint32_t d = 0; d < head_dim; ++d) {
            const double product = static_cast<double>(q.as<float>()[d]) * k.value((first + i) % capacity, d);
            p[i] += product * static_cast<double>(scale);
            magnitudes += std::fabs(product) * static_cast<double>(scale);
          }
          most = std::max(most, p[i]);
          score_error = std::max(score_error, ((head_dim + 15) / 16 + 7) * 0x1p-24 * magnitudes);
        }
        double sum = 0;
        double farthest = 0;
        for (double& each : p) {
          farthest = std::max(farthest, most - each);
          each = std::exp(each - most);
          sum += each;
        }
        const double softmax = 2 * (4 + farthest) + (count + 15) / 16 + 7;
        for (std::uint32_t d = 0; d < head_dim; ++d) {
          double exact = 0;
          double magnitudes = 0;
          for (std::uint32_t i = 0; i < count; ++i) {
            const double term = p[i] / sum * v.value((first + i) % capacity, d);
            exact += term;
            magnitudes += std::fabs(term);
          }
          const double bound = magnitudes * (1.01 * (2 * score_error) + (softmax + count + 3) * 0x1p-24);
          EXPECT_NEAR(out.as<float>()[d], exact, bound) << head_dim << " x " << count << " d " << d;
        }
      }
    }
  }
}

// A query's place may take the answer.
TEST_P(AttendTest, OutMayBeTheQuery) {
  const Cache k(KvType::f16, 4, 80);
  const Cache v(KvType::f16, 4, 80);
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    kernels().kv_store[0](unit_values(80, slot).data(), 80, k.head, slot);
    kernels().kv_store[0](unit_values(80, slot + 9).data(), 80, v.head, slot);
  }
  std::vector<float> q = unit_values(80, 1);
  std::vector<float> scores(4);
  std::vector<float> out(80);
  kernels().attend[0]({q.data(), k.head, v.head, 80, 4, 0, 4, 0.1f, scores.data(), out.data()});
  kernels().attend[0]({q.data(), k.head, v.head, 80, 4, 0, 4, 0.1f, scores.data(), q.data()});
  EXPECT_EQ(q, out);
}

INSTANTIATE_TEST_SUITE_P(Isa, AttendTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
