// The forms in which the cache stores keys and values, at guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kernels/kv_cache.h"

namespace qsf::test {
namespace {

class KvStoreTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

TEST_P(KvStoreTest, StoresHalfFloatsRoundedToEven) {
  std::vector<float> x = {0.0f,      -0.0f,          1.0f,           65504.0f,      65519.0f,       65520.0f, 1e30f,
                          -1e30f,    0x1p-24f,       0x1p-25f,       0x1.8p-25f,    -0x1p-26f,      0x1p-14f, 6.1e-5f,
                          kInfinity, 1.00048828125f, 1.00146484375f, std::nanf(""), -std::nanf(""), 1e-45f};
  Random random(3);
  while (x.size() < 4000) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next())));
  const Cache cache(KvForm::f16, 1, static_cast<std::uint32_t>(x.size()));
  cache.store(kernels(), x, 0);
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(cache.memory.as<f16>()[i], f32_to_f16(x[i])) << x[i];
}

TEST_P(KvStoreTest, StoresInt8UnderOneScale) {
  for (const std::uint32_t head_dim : {2u, 16u, 30u, 64u, 100u}) {
    const Cache cache(KvForm::q8, 3, head_dim);
    const std::vector<float> x = unit_values(head_dim, head_dim);
    cache.store(kernels(), x, 2);
    float amax = 0.0f;
    for (const float v : x) amax = std::max(amax, std::fabs(v));
    EXPECT_EQ(read<float>(cache.position(2)), amax / 127.0f);
    for (std::uint32_t d = 0; d < head_dim; ++d) {
      EXPECT_EQ(read<std::int8_t>(cache.position(2) + 4 + d), std::nearbyint(x[d] * (127.0f / amax)));
    }
  }
}

TEST_P(KvStoreTest, StoresFloatsAsTheyAre) {
  const Cache cache(KvForm::f32, 2, 30);
  const std::vector<float> x = unit_values(30, 1);
  cache.store(kernels(), x, 1);
  for (std::uint32_t d = 0; d < 30; ++d) EXPECT_EQ(cache.value(1, d), x[d]);
}

float below(float bf16_value) { return bf16_to_f32(static_cast<bf16>(f32_to_bf16(bf16_value) - 1)); }

// minimum: the largest bf16 at most the least value. scale: the smallest bf16 at least (most - minimum) / top. So
// every value lies between minimum and minimum + top * scale, within half a scale of its code's; besides, the
// subtraction and the quotient are rounded (2^-23 of at most 15 scales) and the value read is (2^-24 of itself).
TEST_P(KvStoreTest, StoresGroupsWithinHalfAScale) {
  for (const KvForm form : {KvForm::q4, KvForm::q2}) {
    const float top = form == KvForm::q4 ? 15.0f : 3.0f;
    for (const std::uint32_t head_dim : {2u, 16u, 30u, 32u, 64u, 80u, 100u, 128u}) {
      for (const auto& [size, offset] : {std::pair{1.0f, 0.0f},
                                         {1.0f, 1000.0f},
                                         {1e-3f, -7.0f},
                                         {1e30f, 0.0f},
                                         {1e-30f, 1e-32f},
                                         {0.0f, 3.14159f},
                                         {0.0f, 0.0f},
                                         {100.0f, 99.99f}}) {
        const Cache cache(form, 2, head_dim);
        std::vector<float> x = unit_values(head_dim, head_dim);
        for (float& v : x) v = v * size + offset;
        cache.store(kernels(), x, 1);
        for (std::uint32_t d = 0; d < head_dim; ++d) {
          const auto begin = x.begin() + d / 32 * 32, end = std::min(begin + 32, x.end());
          const auto [least, most] = std::minmax_element(begin, end);
          const auto [scale, minimum, code] = cache.group(1, d);
          ASSERT_LE(minimum, *least);
          ASSERT_GE(minimum, *least - 0x1p-7f * std::fabs(*least));
          const float wanted = (*most - minimum) / top;
          ASSERT_GE(scale, wanted);
          ASSERT_TRUE(scale == 0.0f || below(scale) < wanted) << scale << " for " << wanted;
          ASSERT_EQ(static_cast<float>(code), scale == 0.0f ? 0.0f : std::nearbyint((x[d] - minimum) / scale));
          const double error = std::fabs(double{cache.value(1, d)} - double{x[d]});
          ASSERT_LE(error, double{scale} * (0.5 + 15 * 0x1p-23) + 0x1p-24 * std::fabs(double{cache.value(1, d)}))
              << x[d] << " of " << head_dim;
        }
      }
    }
  }
}

// scale: the smallest number of the form's bits that is at least most / top, so that values have at most 11 bits; 0
// below 2^-30. Levels are two apart, or one in r8.
TEST_P(KvStoreTest, StoresRotatedFormsWithinAScale) {
  for (const auto& [form, top, bits] :
       {std::tuple{KvForm::r8, 127.0f, 4}, {KvForm::r4, 15.0f, 7}, {KvForm::r3, 7.0f, 8}, {KvForm::r2, 3.0f, 8}}) {
    for (const std::uint32_t head_dim : {2u, 16u, 30u, 32u, 64u, 100u}) {
      for (const float size : {1.0f, 1e-3f, 1e30f, 1e-12f, 0.0f}) {
        const Cache cache(form, 2, head_dim);
        std::vector<float> x = unit_values(head_dim, head_dim);
        for (float& v : x) v *= size;
        cache.store(kernels(), x, 1);
        for (std::uint32_t d = 0; d < head_dim; ++d) {
          float most = 0;
          for (std::uint32_t i = d / 32 * 32; i < std::min(d / 32 * 32 + 32, head_dim); ++i) {
            most = std::max(most, std::fabs(x[i]));
          }
          const auto [scale, level] = cache.level(1, d);
          int exponent = 0;
          const double mantissa = std::frexp(double{most / top}, &exponent);
          const double wanted = std::ldexp(std::ceil(std::ldexp(mantissa, bits)), exponent - bits);
          ASSERT_EQ(scale, wanted < 0x1p-30 ? 0 : wanted) << most;
          ASSERT_LE(std::fabs(level), top);
          const double half = form == KvForm::r8 ? 0.5 : 1, error = std::fabs(double{scale * level} - double{x[d]});
          ASSERT_LE(error, scale == 0 ? 0x1p-26 : double{scale} * half * (1 + 0x1p-18)) << x[d] << " of " << head_dim;
          const double significand = std::frexp(double{scale * level}, &exponent) * 0x1p11;
          ASSERT_EQ(significand, std::nearbyint(significand));
        }
      }
    }
  }
}

TEST_P(KvStoreTest, WhatIsNotFiniteShows) {
  for (const KvForm form : {KvForm::r8, KvForm::r4, KvForm::r3, KvForm::r2}) {
    const Cache cache(form, 1, 64);
    for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
      std::vector<float> x = unit_values(64, 3);
      x[40] = bad;
      cache.store(kernels(), x, 0);
      for (std::uint32_t d = 0; d < 64; ++d) EXPECT_EQ(std::isnan(cache.value(0, d)), d >= 32) << bad << " " << d;
    }
  }
  for (const KvForm form : {KvForm::q8, KvForm::q4, KvForm::q2}) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf(""), -std::nanf("")}) {
      const Cache cache(form, 1, 64);
      std::vector<float> x = unit_values(64, 3);
      x[40] = bad;
      cache.store(kernels(), x, 0);
      for (std::uint32_t d = 0; d < 64; ++d) {
        EXPECT_EQ(std::isnan(cache.value(0, d)), form == KvForm::q8 || d >= 32) << bad << " " << d;
      }
    }
    const Cache cache(form, 1, 64);
    std::vector<float> x(64, 0x1p-130f);
    cache.store(kernels(), x, 0);
    EXPECT_LE(std::fabs(cache.value(0, 0)), 0x1p-129f);
    if (form == KvForm::q8) continue;
    x[0] = 3e38f;  // the range is no float
    x[1] = -3e38f;
    cache.store(kernels(), x, 0);
    EXPECT_TRUE(std::isnan(cache.value(0, 5)));
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KvStoreTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
