// Half floats against their definition: every value, every midpoint between neighbours, and both sides of it.
#include "qsf/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/seeded.h"

namespace qsf::test {
namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity();

// IEEE 754-2008, 3.4: sign, 5 bits of exponent, 10 of significand.
double f16_value(std::uint32_t h) {
  const double sign = (h & 0x8000u) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(h >> 10 & 0x1f);
  const double fraction = h & 0x3ff;
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool is_f16_number(std::uint32_t h) { return (h & 0x7c00u) != 0x7c00u; }

TEST(HalfTest, EveryF16WidensExactly) {
  for (std::uint32_t h = 0; h < 0x10000; ++h) {
    const float f = f16_to_f32(static_cast<f16>(h));
    EXPECT_EQ(std::signbit(f), (h & 0x8000u) != 0);
    if (is_f16_number(h)) {
      ASSERT_EQ(static_cast<double>(f), f16_value(h)) << h;
      ASSERT_EQ(f32_to_f16(f), h);
    } else if ((h & 0x3ffu) == 0) {
      ASSERT_EQ(std::fabs(f), kFloatInfinity);
      ASSERT_EQ(f32_to_f16(f), h);
    } else {
      ASSERT_TRUE(std::isnan(f));
      ASSERT_EQ(f32_to_f16(f), 0x7e00u | (h & 0x8000u));
    }
  }
}

TEST(HalfTest, F16RoundsHalfToEven) {
  for (std::uint32_t h = 0; h < 0x7c00; ++h) {
    for (const std::uint32_t sign : {0u, 0x8000u}) {
      // The step above the largest number would be 65536.
      const double here = f16_value(h | sign);
      const double next = h == 0x7bff ? (sign != 0 ? -65536 : 65536) : f16_value((h + 1) | sign);
      const auto middle = static_cast<float>((here + next) / 2);
      const std::uint32_t even = (h & 1) == 0 ? h : h + 1;
      ASSERT_EQ(f32_to_f16(middle), even | sign) << h;
      ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), h | sign) << h;
      ASSERT_EQ(f32_to_f16(std::nextafter(middle, sign != 0 ? -kFloatInfinity : kFloatInfinity)), (h + 1) | sign) << h;
    }
  }
  EXPECT_EQ(f32_to_f16(1e30f), 0x7c00u);
  EXPECT_EQ(f32_to_f16(1e-30f), 0u);
  EXPECT_EQ(f32_to_f16(-1e-45f), 0x8000u);
}

TEST(HalfTest, Bf16IsTheUpperHalfRoundedToEven) {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const float f = bf16_to_f32(static_cast<bf16>(b));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(f), b << 16);
    if (!std::isnan(f)) {
      ASSERT_EQ(f32_to_bf16(f), b);
      if (std::isinf(f)) continue;
      const auto with = [&](std::uint32_t low) { return std::bit_cast<float>(b << 16 | low); };
      ASSERT_EQ(f32_to_bf16(with(0x7fff)), b);
      ASSERT_EQ(f32_to_bf16(with(0x8000)), b + (b & 1));
      ASSERT_EQ(f32_to_bf16(with(0x8001)), b + 1);
    } else {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(f))));
      // A NaN whose payload lies in the lower half alone stays one.
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>((b & 0xff80u) << 16 | 1u)))));
    }
  }
}

}  // namespace
}  // namespace qsf::test
