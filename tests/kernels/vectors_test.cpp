// Norms, activations, softmax, rotation and rounding against double precision, and against the scalar table's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

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
    const std::uint32_t blocks = (n + 15) / 16;
    const double bound = (blocks + 5) / 2.0 + 5;
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

// The mean is off by ceil(n / 16) + 5 roundings of e = 2^-24 on the mean magnitude, every difference from it by that
// and one more, `off` at most. That changes the root of the mean square by off at most; as in RmsNorm beyond it.
TEST_P(VectorsTest, LayerNorm) {
  for (const std::uint32_t n : kLengths) {
    const std::vector<float> x = make_values(Values::random, n, n), w = make_values(Values::random, n, n + 1);
    const std::vector<float> b = make_values(Values::random, n, n + 2);
    std::vector<float> y(n + 1, -77.0f), plain(n);
    kernels().layer_norm(x.data(), w.data(), b.data(), y.data(), n, 1e-5f);
    kernels().layer_norm(x.data(), w.data(), nullptr, plain.data(), n, 1e-5f);
    double mean = 0, magnitudes = 0, variance = 0, farthest = 0;
    for (const float v : x) mean += double{v} / n;
    for (const float v : x) {
      magnitudes += std::fabs(double{v}) / n;
      variance += (double{v} - mean) * (double{v} - mean) / n;
      farthest = std::max(farthest, std::fabs(double{v} - mean));
    }
    const std::uint32_t blocks = (n + 15) / 16;
    const double root = std::sqrt(variance + double{1e-5f});
    const double off = ((blocks + 5) * magnitudes + farthest) * 0x1p-24;
    for (std::uint32_t i = 0; i < n; ++i) {
      const double exact = double{w[i]} * (double{x[i]} - mean) / root;
      const double bound = std::fabs(double{w[i]}) / root * off * 1.01 +
                           std::fabs(exact) * (1.01 * off / root + ((blocks + 5) / 2.0 + 5) * 0x1p-24);
      ASSERT_NEAR(plain[i], exact, bound) << n;
      ASSERT_EQ(y[i], plain[i] + b[i]);
    }
    EXPECT_EQ(y[n], -77.0f);
    std::vector<float> in_place = x;
    kernels().layer_norm(in_place.data(), w.data(), b.data(), in_place.data(), n, 1e-5f);
    in_place.push_back(-77.0f);
    EXPECT_EQ(in_place, y);
  }
}

// e^x is within 2 ulp (4 e); a sum, a reciprocal, a product, and the rounding of x - max and of its quotient by the
// temperature, whose error the exponential multiplies by |x - max| / temperature.
TEST_P(VectorsTest, Softmax) {
  for (const float temperature : {1.0f, 0.3f, 2.0f}) {
    for (const std::uint32_t n : kLengths) {
      std::vector<float> x = make_values(Values::random, n, n);
      for (float& v : x) v *= 0.1f;
      std::vector<float> y = x;
      y.push_back(-77.0f);
      kernels().softmax(y.data(), n, temperature);
      const std::uint32_t blocks = (n + 15) / 16;
      const double most = double{*std::max_element(x.begin(), x.end())};
      double sum = 0, farthest = 0;
      for (const float v : x) {
        sum += std::exp((double{v} - most) / double{temperature});
        farthest = std::max(farthest, (most - double{v}) / double{temperature});
      }
      for (std::uint32_t i = 0; i < n; ++i) {
        const double exact = std::exp((double{x[i]} - most) / double{temperature}) / sum;
        const double roundings = 2 * (4 + 2 * farthest) + blocks + 4 + 3;
        // Two roundings may put it on the other side of the limit.
        const double below = (most - double{x[i]}) / double{temperature};
        if (below > 64 * (1 + 0x1p-22)) {
          EXPECT_EQ(y[i], 0.0f) << n;
        } else if (below < 64 * (1 - 0x1p-22)) {
          EXPECT_NEAR(y[i], exact, exact * roundings * 0x1p-24) << n;
        }
      }
      EXPECT_EQ(y[n], -77.0f);
    }
  }
  for (const float temperature : {1.0f, 1e-40f}) {
    std::vector<float> far{-3e38f, 3e38f, 3e38f, -kInfinity};
    kernels().softmax(far.data(), 4, temperature);
    EXPECT_EQ(far, (std::vector<float>{0.0f, 0.5f, 0.5f, 0.0f}));
  }
  std::vector<float> small{0.0f, -63.9f, -64.1f, -100.0f};
  kernels().softmax(small.data(), 4, 1.0f);
  EXPECT_EQ(small[0], 1.0f);
  EXPECT_NEAR(small[1], std::exp(double{-63.9f}), 1e-30);
  EXPECT_EQ(small[2], 0.0f);
  EXPECT_EQ(small[3], 0.0f);
}

/// f alone, then times `up`.
std::vector<float> activated(Activate* f, const std::vector<float>& x, const std::vector<float>& up) {
  std::vector<float> alone = x, both = x;
  alone.push_back(-77.0f);
  const auto n = static_cast<std::uint32_t>(x.size());
  f(alone.data(), nullptr, n);
  f(both.data(), up.data(), n);
  EXPECT_EQ(alone.back(), -77.0f);
  for (std::uint32_t i = 0; i < n; ++i) {
    const float product = alone[i] * up[i];
    EXPECT_TRUE(both[i] == product || (std::isnan(both[i]) && std::isnan(product))) << x[i];
  }
  alone.pop_back();
  return alone;
}

/// Magnitudes from denormal to 2^8, and the neighbourhood of 0 densely.
std::vector<float> activation_arguments(std::uint32_t n) {
  std::vector<float> x = make_values(Values::random, n, n);
  if (n < 1000) return x;
  for (double at = -12; at < 12; at += 1.0 / 509) x.push_back(static_cast<float>(at));
  for (float at = 0x1p-149f; at < 16.0f; at *= 1.7f) x.insert(x.end(), {at, -at});
  return x;
}

// x / (1 + e^-v): e^-v within 4 e, a sum, a quotient, and what v's own error of `off` roundings does to the
// exponential. Below about v = -88.72, where e^-v is no float, the result is -0 instead of at most |x| 2^-127.
void expect_logistic(float x, float y, double v, double off) {
  const double exact = double{x} / (1 + std::exp(-v)), size = std::fabs(v);
  const double bound =
      std::fabs(exact) * 1.01 * (6 + off * size) * 0x1p-24 + std::fabs(double{x}) * 0x1p-127 + 0x1p-149;
  ASSERT_NEAR(y, exact, bound) << x;
}

// gelu's v: two constants, two sums and products, and the square: 6 roundings.
TEST_P(VectorsTest, SiluAndGelu) {
  for (const std::uint32_t n : kLengths) {
    const std::vector<float> x = activation_arguments(n), up = make_values(Values::random, x.size(), n + 1);
    const std::vector<float> silu = activated(kernels().silu, x, up), gelu = activated(kernels().gelu, x, up);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double at = double{x[i]};
      expect_logistic(x[i], silu[i], at, 0);
      expect_logistic(x[i], gelu[i], 2 * std::sqrt(2 / std::numbers::pi) * (at + 0.044715 * at * at * at), 6);
    }
  }
  for (Activate* const f : {kernels().silu, kernels().gelu}) {
    const std::vector<float> ends = activated(f, {-kInfinity, -1000.0f, 1000.0f, 0.0f, -1e30f, 1e30f, kInfinity, kNaN},
                                              std::vector<float>(8, 1.0f));
    EXPECT_TRUE(std::isnan(ends[0]));  // -infinity / infinity
    EXPECT_EQ((std::vector<float>(ends.begin() + 1, ends.end() - 1)),
              (std::vector<float>{0, 1000, 0, 0, 1e30f, kInfinity}));
    EXPECT_TRUE(std::isnan(ends[7]));
  }
}

// The table's error is derived in gelu_fast.
TEST_P(VectorsTest, GeluFastIsWithinItsBound) {
  const std::vector<float> x = activation_arguments(1000);
  const std::vector<float> y = activated(kernels().gelu_fast, x, std::vector<float>(x.size(), 2.0f));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = double{x[i]}, u = std::sqrt(2 / std::numbers::pi) * (at + 0.044715 * at * at * at);
    ASSERT_NEAR(y[i], at / 2 * (1 + std::tanh(u)), 0x1p-15) << x[i];
  }
  const std::vector<float> ends =
      activated(kernels().gelu_fast, {-kInfinity, -1e30f, 1e30f, kInfinity, kNaN}, std::vector<float>(5, 1.0f));
  EXPECT_EQ((std::vector<float>(ends.begin(), ends.end() - 1)), (std::vector<float>{0, 0, 1e30f, kInfinity}));
  EXPECT_TRUE(std::isnan(ends[4]));
}

// The formula's 1.5e-7 of erf, halved, and float's roundings, on |x|; the smallest step where the result is denormal.
TEST_P(VectorsTest, GeluErfIsWithinItsBound) {
  const std::vector<float> x = activation_arguments(1000);
  const std::vector<float> y = activated(kernels().gelu_erf, x, std::vector<float>(x.size(), 2.0f));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = double{x[i]};
    ASSERT_NEAR(y[i], at / 2 * (1 + std::erf(at / std::numbers::sqrt2)), std::fabs(at) * 0x1p-21 + 0x1p-149) << x[i];
  }
  const std::vector<float> ends =
      activated(kernels().gelu_erf, {-kInfinity, -1e30f, 1e30f, kInfinity, kNaN}, std::vector<float>(5, 1.0f));
  EXPECT_EQ((std::vector<float>(ends.begin(), ends.end() - 1)), (std::vector<float>{0, 0, 1e30f, kInfinity}));
  EXPECT_TRUE(std::isnan(ends[4]));
}

// tanh within 3 ulp, a quotient and a product; a denormal quotient is off by half the smallest step.
TEST_P(VectorsTest, SoftCap) {
  for (const float cap : {0.5f, 15.0f, 50.0f}) {
    std::vector<float> x = activation_arguments(1000);
    const std::vector<float> before = x;
    kernels().soft_cap(x.data(), static_cast<std::uint32_t>(x.size()), cap);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = double{cap} * std::tanh(double{before[i]} / double{cap});
      ASSERT_NEAR(x[i], exact, std::fabs(exact) * 5 * 0x1p-23 + (1 + double{cap}) * 0x1p-149) << before[i];
    }
  }
}

TEST_P(VectorsTest, ElementByElement) {
  for (const std::uint32_t n : kLengths) {
    const std::vector<float> x = make_values(Values::random, n, n), y = make_values(Values::random, n, n + 1);
    std::vector<float> sum = x, product = x, scaled = x, relu = x, relu2 = x;
    kernels().add(sum.data(), y.data(), n);
    kernels().mul(product.data(), y.data(), n);
    kernels().scale(scaled.data(), 0.3f, n);
    kernels().relu(relu.data(), nullptr, n);
    kernels().relu2(relu2.data(), nullptr, n);
    std::vector<f16> halves(n + 1);
    for (std::uint32_t i = 0; i <= n; ++i) halves[i] = static_cast<f16>(1777 * i * n);
    std::vector<float> widened(n + 1, -77.0f);
    kernels().widen_f16(reinterpret_cast<const std::byte*>(halves.data()), widened.data(), n);
    for (std::uint32_t i = 0; i < n; ++i) {
      EXPECT_EQ(sum[i], x[i] + y[i]);
      EXPECT_EQ(product[i], x[i] * y[i]);
      EXPECT_EQ(scaled[i], x[i] * 0.3f);
      EXPECT_EQ(relu[i], std::max(x[i], 0.0f));
      EXPECT_EQ(relu2[i], std::max(x[i], 0.0f) * std::max(x[i], 0.0f));
      const float wide = f16_to_f32(halves[i]);
      EXPECT_TRUE(widened[i] == wide || (std::isnan(widened[i]) && std::isnan(wide)));
    }
    EXPECT_EQ(widened[n], -77.0f);
  }
}

// All of them, 16 of a kind together and mixed.
TEST_P(VectorsTest, EveryHalfFloatWidensExactly) {
  for (const std::uint32_t step : {1u, 40503u}) {
    std::vector<f16> halves(65536);
    for (std::uint32_t i = 0; i < 65536; ++i) halves[i] = static_cast<f16>(i * step);
    std::vector<float> widened(65536);
    kernels().widen_f16(reinterpret_cast<const std::byte*>(halves.data()), widened.data(), 65536);
    const auto same = [](f16 half, float wide) {
      const float expected = f16_to_f32(half);
      return std::isnan(expected) ? std::isnan(wide) : std::memcmp(&wide, &expected, sizeof wide) == 0;
    };
    EXPECT_TRUE(std::ranges::equal(halves, widened, same)) << "step " << step;
  }
}

// Every column and head of a batch by the definition, and none of the floats between two columns' heads.
TEST_P(VectorsTest, RopeOfABatch) {
  for (const std::uint32_t half : kLengths) {
    const std::uint32_t dims = 2 * half, head_dim = dims + half % 3 * 2, columns = 3, n_heads = 2;
    const std::uint32_t stride = n_heads * head_dim + 5;
    const std::vector<float> cos = make_values(Values::random, columns * half, 4);
    const std::vector<float> sin = make_values(Values::random, columns * half, 5);
    std::vector<float> v = make_values(Values::random, columns * stride, 6), turned = v;
    for (std::uint32_t c = 0; c < columns; ++c) {
      for (std::uint32_t h = 0; h < n_heads; ++h) {
        float* const head = turned.data() + c * stride + h * head_dim;
        for (std::uint32_t i = 0; i < half; ++i) {
          const float ac = head[i] * cos[c * half + i], bs = head[half + i] * sin[c * half + i];
          const float bc = head[half + i] * cos[c * half + i], as = head[i] * sin[c * half + i];
          head[i] = ac - bs;
          head[half + i] = bc + as;
        }
      }
    }
    std::vector<float> apart = v;
    kernels().rope({v.data(), columns, stride, n_heads, head_dim, dims, cos.data(), sin.data()});
    EXPECT_EQ(v, turned);
    for (std::uint32_t c = 0; c < columns; ++c) {
      for (std::uint32_t h = 0; h < n_heads; ++h) {
        kernels().rope({apart.data() + c * stride + h * head_dim, 1, 0, 1, head_dim, dims, cos.data() + c * half,
                        sin.data() + c * half});
      }
    }
    EXPECT_EQ(apart, turned);
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
          const std::size_t at = columns.place(c, group);
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
            ASSERT_EQ(columns.codes()[at * kGroup + i], static_cast<int>(code));
            sum += static_cast<int>(code);
            halves[i / 16] += static_cast<int>(code);
          }
          ASSERT_EQ(columns.d()[at], none ? 0.0f : amax / 127.0f);
          ASSERT_EQ(columns.sums()[at], sum);
          for (std::size_t half = 0; half < 2; ++half) {
            ASSERT_EQ(columns.half_sums()[at * 2 + half], halves[half]);
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
