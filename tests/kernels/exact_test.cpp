// The kernels exp, tanh, sin and cos against the C library's in long double: over all magnitudes of a float, densely
// where they bend, at random and at the ends.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cases.h"

namespace qsf::test {
namespace {

/// The distance of a float of x's magnitude to the next.
double ulp_of(long double x) { return std::ldexp(1.0, std::max(std::ilogb(x), -126) - 23); }

/// Every float magnitude in steps of 2^-9 of an octave and every denormal octave, both signs; [-20, 20] densely;
/// random.
std::vector<float> arguments() {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0x7f800000u; bits += 0x4001) {
    x.push_back(std::bit_cast<float>(bits));
    x.push_back(-x.back());
  }
  for (std::uint32_t bits = 1; bits < 0x00800000u; bits *= 2) x.push_back(std::bit_cast<float>(bits));
  for (double at = -20; at < 20; at += 1.0 / 2053) x.push_back(static_cast<float>(at));
  Random random(7);
  for (int i = 0; i < 20000; ++i) x.push_back(100 * random.symmetric());
  return x;
}

class ExactKernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() const { return *GetParam(); }

  std::vector<float> apply(void (*f)(float*, std::uint32_t), std::vector<float> x) const {
    f(x.data(), static_cast<std::uint32_t>(x.size()));
    return x;
  }
};

TEST_P(ExactKernelsTest, ExpIsWithinTwoUlp) {
  const std::vector<float> x = arguments();
  const std::vector<float> y = apply(kernels().exp, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    if (exact > static_cast<long double>(std::numeric_limits<float>::max())) {
      EXPECT_EQ(y[i], kInfinity) << x[i];
    } else {
      ASSERT_LE(std::fabs(static_cast<long double>(y[i]) - exact), 2 * ulp_of(exact)) << x[i];
    }
  }
}

TEST_P(ExactKernelsTest, ExpAtTheEnds) {
  EXPECT_EQ(apply(kernels().exp, {0.0f, -0.0f, -kInfinity, -1e30f, -105.0f, 88.73f, kInfinity}),
            (std::vector<float>{1, 1, 0, 0, 0, kInfinity, kInfinity}));
  EXPECT_TRUE(std::isnan(apply(kernels().exp, {kNaN})[0]));
}

TEST_P(ExactKernelsTest, TanhIsWithinThreeUlp) {
  const std::vector<float> x = arguments();
  const std::vector<float> y = apply(kernels().tanh, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::tanh(static_cast<long double>(x[i]));
    ASSERT_LE(std::fabs(static_cast<long double>(y[i]) - exact), 3 * ulp_of(exact)) << x[i];
    ASSERT_EQ(std::signbit(y[i]), std::signbit(x[i])) << x[i];
  }
}

TEST_P(ExactKernelsTest, TanhAtTheEnds) {
  EXPECT_EQ(apply(kernels().tanh, {0.0f, 10.0f, -10.0f, kInfinity, -kInfinity, 1e-45f}),
            (std::vector<float>{0, 1, -1, 1, -1, 1e-45f}));
  EXPECT_TRUE(std::isnan(apply(kernels().tanh, {kNaN})[0]));
}

TEST_P(ExactKernelsTest, SinAndCosAreNearlyRoundedToNearest) {
  std::vector<float> x = arguments();
  Random random(8);
  for (int i = 0; i < 50000; ++i) x.push_back(0x1p24f * random.symmetric());
  const auto n = static_cast<std::uint32_t>(x.size());
  std::vector<float> sin(n), cos(n);
  kernels().sin_cos(x.data(), sin.data(), cos.data(), n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const long double at = static_cast<long double>(x[i]);
    if (std::fabs(at) > 0x1p30L) {
      ASSERT_TRUE(std::isnan(sin[i]) && std::isnan(cos[i])) << x[i];
      continue;
    }
    const auto bound = [&](long double exact) {
      return std::fabs(at) <= 0x1p24L ? 0.5 * ulp_of(exact) + 0x1p-40 : 0x1p-21;
    };
    ASSERT_LE(std::fabs(static_cast<long double>(sin[i]) - std::sin(at)), bound(std::sin(at))) << x[i];
    ASSERT_LE(std::fabs(static_cast<long double>(cos[i]) - std::cos(at)), bound(std::cos(at))) << x[i];
  }
}

TEST_P(ExactKernelsTest, SinAndCosAtTheEnds) {
  std::vector<float> x{0.0f, -0.0f, 1e-45f, 0x1p30f, kInfinity, -kInfinity, kNaN};
  std::vector<float> cos(x.size());
  kernels().sin_cos(x.data(), x.data(), cos.data(), static_cast<std::uint32_t>(x.size()));  // in place
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_TRUE(std::signbit(x[1]));
  EXPECT_EQ(x[2], 1e-45f);
  EXPECT_FALSE(std::isnan(x[3]));
  EXPECT_EQ(cos[0], 1.0f);
  for (std::size_t i = 4; i < x.size(); ++i) EXPECT_TRUE(std::isnan(x[i]) && std::isnan(cos[i])) << i;
}

INSTANTIATE_TEST_SUITE_P(Isa, ExactKernelsTest, testing::ValuesIn(available_kernels()),
                         [](const auto& info) { return std::string(info.param->isa); });

}  // namespace
}  // namespace qsf::test
