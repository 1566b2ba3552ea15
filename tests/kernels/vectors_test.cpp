// Norms, activations, softmax, rotation and rounding against double precision, and against the scalar table's bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cases.h"
// The scalar vocabulary, to test the exponential by itself.
#include "kernels/vec/scalar.h"
//
#include "kernels/exact.inl"

namespace qsf::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float exp_of(float x) {
  float lanes[16];
  store(lanes, qsf::exp(all(x)));
  return lanes[0];
}

double ulp_of(double x) { return std::ldexp(1.0, std::max(std::ilogb(x), -126) - 23); }

TEST(ExpTest, WithinTwoUlp) {
  double worst = 0;
  for (double x = -87.3; x < 88.7; x += 1.0 / 4099) {
    const auto rounded = static_cast<float>(x);
    const long double exact = std::exp(static_cast<long double>(rounded));
    const double error = static_cast<double>(std::fabs(static_cast<long double>(exp_of(rounded)) - exact));
    worst = std::max(worst, error / ulp_of(static_cast<double>(exact)));
  }
  EXPECT_LT(worst, 2.0);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(ExpTest, Ends) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-0.0f), 1.0f);
  EXPECT_EQ(exp_of(-kInfinity), 0.0f);
  EXPECT_EQ(exp_of(-1e30f), 0.0f);
  EXPECT_EQ(exp_of(kInfinity), kInfinity);
  EXPECT_EQ(exp_of(88.73f), kInfinity);
  EXPECT_TRUE(std::isnan(exp_of(kNaN)));
  // Below 2^-126 the result keeps an absolute precision: 2 of the smallest steps.
  for (float x = -104.0f; x < -87.0f; x += 0.37f) {
    EXPECT_NEAR(exp_of(x), std::exp(static_cast<double>(x)), 2 * 0x1p-149 + 0x1p-23 * std::exp(double{x})) << x;
  }
}

class VectorsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }
};

constexpr std::uint32_t kLengths[] = {1, 2, 15, 16, 17, 31, 48, 64, 288, 1000};

// A sum of n positive terms in 16 lanes: ceil(n / 16) + 4 additions and the product on each term, e = 2^-24; the mean,
// the root and two products add 5 roundings of their own.
TEST_P(VectorsTest, RmsNorm) {
  for (const std::uint32_t n : kLengths) {
    const std::vector<float> x = make_values(Values::random, n, n);
    const std::vector<float> w = make_values(Values::random, n, n + 1);
    std::vector<float> y(n + 1, -77.0f);
    kernels().rms_norm(x.data(), w.data(), y.data(), n, 1e-6f);
    double sum = 0;
    for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
    const double inverse = 1 / std::sqrt(sum / n + static_cast<double>(1e-6f));
    const double bound = ((n + 15) / 16 + 5) / 2.0 + 5;
    for (std::uint32_t i = 0; i < n; ++i) {
      const double exact = static_cast<double>(w[i]) * static_cast<double>(x[i]) * inverse;
      EXPECT_NEAR(y[i], exact, std::fabs(exact) * bound * 0x1p-24) << n;
    }
    EXPECT_EQ(y[n], -77.0f);
    std::vector<float> in_place = x;
    kernels().rms_norm(in_place.data(), w.data(), in_place.data(), n, 1e-6f);
    in_place.push_back(-77.0f);
    EXPECT_EQ(in_place, y);
  }
}

// e^x is within 2 ulp (4 e); a sum, a reciprocal, a product and the rounding of x - max, whose error the exponential
// multiplies by |x - max| / 2 ulp.
TEST_P(VectorsTest, Softmax) {
  for (const std::uint32_t n : kLengths) {
    std::vector<float> x = make_values(Values::random, n, n);
    for (float& v : x) v *= 0.1f;
    std::vector<float> y = x;
    y.push_back(-77.0f);
    kernels().softmax(y.data(), n);
    double most = -1e300;
    for (const float v : x) most = std::max(most, static_cast<double>(v));
    double sum = 0;
    for (const float v : x) sum += std::exp(static_cast<double>(v) - most);
    double farthest = 0;
    for (const float v : x) farthest = std::max(farthest, most - static_cast<double>(v));
    for (std::uint32_t i = 0; i < n; ++i) {
      const double exact = std::exp(static_cast<double>(x[i]) - most) / sum;
      const double roundings = 2 * (4 + farthest) + (n + 15) / 16 + 4 + 3;
      EXPECT_NEAR(y[i], exact, exact * roundings * 0x1p-24 + 0x1p-140) << n;
    }
    EXPECT_EQ(y[n], -77.0f);
  }
  std::vector<float> far{-3e38f, 3e38f, 3e38f, -kInfinity};
  kernels().softmax(far.data(), 4);
  EXPECT_EQ(far, (std::vector<float>{0.0f, 0.5f, 0.5f, 0.0f}));
}

// silu: e^-x within 4 e, a sum, a quotient; then the product. Below about -88.72, where e^-x is no float, silu is -0
// instead of at most 89 * 2^-128.
TEST_P(VectorsTest, SiluMul) {
  for (const std::uint32_t n : kLengths) {
    const std::vector<float> gate = make_values(Values::random, n, n);
    const std::vector<float> up = make_values(Values::random, n, n + 1);
    std::vector<float> y = gate;
    y.push_back(-77.0f);
    kernels().silu_mul(y.data(), up.data(), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      const double g = static_cast<double>(gate[i]);
      const double exact = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
      EXPECT_NEAR(y[i], exact, std::fabs(exact) * 8 * 0x1p-24 + 89 * 0x1p-128 * std::fabs(static_cast<double>(up[i])))
          << gate[i];
    }
    EXPECT_EQ(y[n], -77.0f);
  }
  std::vector<float> ends{-kInfinity, -1000.0f, 1000.0f, 0.0f};
  const std::vector<float> ones(4, 1.0f);
  kernels().silu_mul(ends.data(), ones.data(), 4);
  EXPECT_TRUE(std::isnan(ends[0]));  // -infinity / infinity
  EXPECT_EQ(ends[1], 0.0f);
  EXPECT_EQ(ends[2], 1000.0f);
  EXPECT_EQ(ends[3], 0.0f);
}

TEST_P(VectorsTest, AddAndRope) {
  for (const std::uint32_t n : kLengths) {
    std::vector<float> x = make_values(Values::random, n, n);
    const std::vector<float> y = make_values(Values::random, n, n + 1);
    std::vector<float> sum(n);
    for (std::uint32_t i = 0; i < n; ++i) sum[i] = x[i] + y[i];
    kernels().add(x.data(), y.data(), n);
    EXPECT_EQ(x, sum);
    const std::uint32_t head_dim = 2 * n;
    const std::vector<float> cos = make_values(Values::random, n, 4);
    const std::vector<float> sin = make_values(Values::random, n, 5);
    std::vector<float> v = make_values(Values::random, head_dim, 6);
    std::vector<float> turned(head_dim);
    for (std::uint32_t i = 0; i < n; ++i) {
      const float ac = v[i] * cos[i];
      const float bs = v[n + i] * sin[i];
      const float bc = v[n + i] * cos[i];
      const float as = v[i] * sin[i];
      turned[i] = ac - bs;
      turned[n + i] = bc + as;
    }
    kernels().rope(v.data(), cos.data(), sin.data(), head_dim);
    EXPECT_EQ(v, turned);
  }
}

TEST_P(VectorsTest, ArgmaxIsTheFirstOfEquals) {
  for (const std::uint32_t n : kLengths) {
    for (std::uint32_t at = 0; at < n; at += 7) {
      std::vector<float> x(n, -kInfinity);
      x[at] = -5.0f;
      x[n - 1] = -5.0f;
      EXPECT_EQ(kernels().argmax(x.data(), n), at);
    }
  }
  const std::vector<float> x{kNaN, 1.0f, kNaN, 3.0f, 3.0f, kNaN};
  EXPECT_EQ(kernels().argmax(x.data(), 6), 3u);
  EXPECT_EQ(kernels().argmax(x.data(), 1), 0u);
}

TEST_P(VectorsTest, QuantizeColumnsIsTheDefinition) {
  for (const Values kind : kAllValues) {
    for (const std::uint32_t cols : {1u, 16u, 31u, 32u, 33u, 172u, 256u, 300u}) {
      const std::uint32_t stride = cols + 5;
      const std::uint32_t padded = padded_cols(cols);
      const std::vector<float> x = make_values(kind, 3 * stride, cols);
      const Columns columns(kernels(), x, stride, cols, 3);
      for (std::uint32_t c = 0; c < 3; ++c) {
        for (std::uint32_t group = 0; group < padded / kGroup; ++group) {
          float amax = 0.0f;
          const auto value = [&](std::uint32_t i) {
            const std::uint32_t k = group * kGroup + i;
            return k < cols ? x[c * stride + k] : 0.0f;
          };
          for (std::uint32_t i = 0; i < kGroup; ++i) amax = std::max(amax, std::fabs(value(i)));
          const bool none = amax < 0x1p-120f;
          std::int32_t sum = 0;
          std::int32_t halves[2] = {};
          for (std::uint32_t i = 0; i < kGroup; ++i) {
            const float code = none ? 0.0f : std::nearbyint(value(i) * (127.0f / amax));
            ASSERT_EQ(columns.codes()[c * padded + group * kGroup + i], static_cast<int>(code));
            sum += static_cast<int>(code);
            halves[i / 16] += static_cast<int>(code);
          }
          ASSERT_EQ(columns.d()[c * padded / kGroup + group], none ? 0.0f : amax / 127.0f);
          ASSERT_EQ(columns.sums()[c * padded / kGroup + group], sum);
          for (std::size_t half = 0; half < 2; ++half) {
            ASSERT_EQ(columns.half_sums()[(c * padded / kGroup + group) * 2 + half], halves[half]);
          }
        }
      }
    }
  }
}

TEST_P(VectorsTest, WhatIsNotFiniteShows) {
  for (const float bad : {kInfinity, -kInfinity, kNaN, -kNaN}) {
    std::vector<float> x(64, 1.0f);
    x[37] = bad;
    const Columns columns(kernels(), x, 64, 64, 1);
    EXPECT_EQ(columns.d()[0], 1.0f / 127.0f);
    EXPECT_EQ(columns.sums()[0], 32 * 127);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(columns.d()[1]), 0x7fc00000u);
    EXPECT_EQ(columns.sums()[1], 0);
    for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(columns.codes()[i], 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, VectorsTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
