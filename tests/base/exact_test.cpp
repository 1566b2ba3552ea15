// The scalar functions against the C library's in long double, and one hash of their bits for every machine.
#include "qsf/base/exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "support/seeded.h"

namespace qsf::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double between(Random& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.next() >> 11) * 0x1p-53;
}

double relative_error(double value, long double exact) {
  return static_cast<double>(std::fabs((static_cast<long double>(value) - exact) / exact));
}

TEST(ExactTest, Exp) {
  Random random(1);
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 2 == 0 ? between(random, -708, 709) : between(random, -2, 2);
    ASSERT_LE(relative_error(exact::exp(x), std::exp(static_cast<long double>(x))), 0x1p-50) << x;
  }
  EXPECT_EQ(exact::exp(0.0), 1.0);
  EXPECT_EQ(exact::exp(-1000.0), 0.0);
  EXPECT_EQ(exact::exp(-kInfinity), 0.0);
  EXPECT_EQ(exact::exp(1000.0), kInfinity);
  EXPECT_EQ(exact::exp(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact::exp(kNaN)));
  EXPECT_NEAR(exact::exp(-740.0), std::exp(-740.0), 0x1p-1074);
}

TEST(ExactTest, Log) {
  Random random(2);
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 3 == 0 ? std::ldexp(between(random, 1, 2), static_cast<int>(random.below(2046)) - 1022)
                                : between(random, i % 3 == 1 ? 0.99 : 0.5, i % 3 == 1 ? 1.01 : 2);
    ASSERT_LE(relative_error(exact::log(x), std::log(static_cast<long double>(x))), 0x1p-50) << x;
  }
  EXPECT_EQ(exact::log(1.0), 0.0);
  EXPECT_EQ(exact::log(0.0), -kInfinity);
  EXPECT_EQ(exact::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact::log(-1.0)));
  EXPECT_TRUE(std::isnan(exact::log(kNaN)));
  EXPECT_LE(relative_error(exact::log(0x1p-1074), std::log(0x1p-1074L)), 0x1p-50);
}

TEST(ExactTest, Pow) {
  Random random(3);
  for (int i = 0; i < 100000; ++i) {
    const double x = i % 2 == 0 ? between(random, 1e-3, 1e7) : 500000.0;
    const double y = between(random, -3, 3);
    const double size = 1 + std::fabs(y * std::log(x));
    ASSERT_LE(relative_error(exact::pow(x, y), std::pow(static_cast<long double>(x), static_cast<long double>(y))),
              0x1p-50 * size)
        << x << " " << y;
  }
}

TEST(ExactTest, TheSameBitsOnEveryMachine) {
  Random random(5);
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) {
    const double x = between(random, -700, 700);
    const double positive = between(random, 1e-6, 1e6);
    values.insert(values.end(), {exact::exp(x), exact::log(positive), exact::pow(positive, x / 700)});
  }
  Hash hash;
  hash.add(std::span<const double>(values));
  EXPECT_EQ(hash.value(), 0x63357163cb4aaa61u) << "0x" << std::hex << hash.value();
}

}  // namespace
}  // namespace qsf::test
