// Vectors that a source stores as matrices, and those of which it has the logarithms.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "converter/tensors/parts.h"
#include "tests/support/error_of.h"

namespace qsf::convert {
namespace {

/// Values 0, 1, 2 ... in rows of the last extent.
LoadedTensor counted(std::vector<std::uint64_t> shape) {
  LoadedTensor tensor{"counted", "F32", FormatId::f32, std::move(shape), {}};
  tensor.rows_of = [cols = tensor.shape.back()](std::uint32_t begin, std::uint32_t n,
                                                std::span<std::byte> out) -> Status {
    if (out.size() != n * cols * sizeof(float)) return make_error(ErrorCode::internal, "{} bytes", out.size());
    for (std::uint64_t i = 0; i < n * cols; ++i) {
      const auto value = static_cast<float>(begin * cols + i);
      std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
    }
    return {};
  };
  return tensor;
}

std::vector<float> values_of(const LoadedTensor& tensor, const TensorPart& part) {
  const Result<RowRange> range = rows_of_part(tensor, part, {}, {});
  EXPECT_TRUE(range) << range.error().sentence;
  if (!range) return {};
  const LoadedTensor out = part_of(tensor, part, *range, nullptr);
  EXPECT_EQ(out.shape, std::vector<std::uint64_t>{range->count()});
  std::vector<float> values(out.shape[0]);
  EXPECT_TRUE(out.rows_of(0, 1, std::as_writable_bytes(std::span(values))));
  return values;
}

TEST(FlatPart, IsAllRowsOrAllColumns) {
  for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{3, 2}, {3, 1, 2}, {1, 3, 1, 2}}) {
    const LoadedTensor tensor = counted(shape);
    EXPECT_EQ(values_of(tensor, {.flat = true}), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(values_of(tensor, {.transposed = true, .flat = true}), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  }
}

TEST(FlatPart, IsRefusedOfWhatIsNoMatrix) {
  for (const std::vector<std::uint64_t>& shape :
       {std::vector<std::uint64_t>{6}, {}, {3, 0}, {1u << 20, 2, 2}, {2, std::uint64_t{1} << 32}}) {
    const Result<RowRange> range = rows_of_part({"odd", "F32", FormatId::f32, shape, {}}, {.flat = true}, {}, {});
    ASSERT_FALSE(range) << shape.size();
    EXPECT_EQ(error_of(range).code, ErrorCode::bad_input);
  }
}

TEST(MinusExp, IsMinusThePowerOfE) {
  const std::vector<float> values = values_of(counted({4}), {.minus_exp = true});
  ASSERT_EQ(values.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(values[i], -std::exp(static_cast<float>(i)));
}

}  // namespace
}  // namespace qsf::convert
