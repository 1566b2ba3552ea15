// That the toys are there, beside matmul_test.cpp, which takes every format to every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

TEST(ToyTest, TheInstructionSetIsAvailable) {
  ASSERT_EQ(available_kernels().size(), 2u);
  EXPECT_EQ(available_kernels()[0]->isa, "scalar");
  EXPECT_EQ(best_kernels().isa, "toy");
}

// A weight is off by half a step, and by the rounding of scale and minimum to 11 bits.
TEST(ToyTest, TheFormatRoundsRows) {
  const Format* const toy = find_format("toy");
  ASSERT_NE(toy, nullptr);
  EXPECT_EQ(toy, find_format(toy->id));
  std::vector<float> weights(2 * toy->block);
  Random random(1);
  for (float& w : weights) w = random.symmetric();
  std::vector<std::byte> row(row_bytes(*toy, weights.size()));
  quantize_row(*toy, weights, row);
  std::vector<float> back(weights.size());
  dequantize_row(*toy, row, back);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_NEAR(back[i], weights[i], 1.0 / 63 + 3 * 0x1p-11) << i;
  }
}

}  // namespace
}  // namespace qsf::test
