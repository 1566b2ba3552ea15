// Products: against a plain reading of the definition bit for bit, against double precision within a derived bound,
// every instruction set against the scalar one, and no access outside the spans.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/tile.h"
#include "kernels/cases.h"
#include "qsf/base/half.h"

namespace qsf::test {
namespace {

constexpr std::uint32_t kRows[] = {1, 15, 16, 17, 63, 64, 65, 257};
constexpr std::uint32_t kCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 21};  // of columns: one pass, and what it leaves
constexpr double kEpsilon = 0x1p-24;

std::vector<std::uint32_t> shapes_of(const Format& f) {
  return {f.block, 3u * std::max<std::uint32_t>(f.block, 5), 172};
}

std::vector<std::uint32_t> bits_of(std::span<const float> values) {
  std::vector<std::uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<std::uint32_t>(v));
  return bits;
}

// "Arithmetic" read literally, from row-major blocks: one accumulator per row, scales ascending.
float defined_quantized(const Weights& w, std::uint32_t row, const Columns& x, std::uint32_t column) {
  const Format& f = *w.format;
  const std::size_t step = std::min(sub_block(f), kGroup);  // columns that share scales of weights and activations
  float acc = 0.0f;
  BlockValues block;
  for (std::size_t k = 0; k < (w.cols + kGroup - 1) / kGroup * kGroup; k += step) {
    if (k % f.block == 0) {
      unpack_block(f, w.row_major.data() + row * row_bytes(f, w.cols) + k / f.block * f.block_bytes, block);
    }
    const std::size_t group = x.place(column, k / kGroup);
    std::int32_t isum = 0;
    std::int32_t xsum = 0;
    for (std::size_t i = 0; i < step; ++i) {
      const std::int32_t code = x.codes()[group * kGroup + k % kGroup + i];
      isum += (level(f, block.codes[k % f.block + i]) - f.offset) * code;
      xsum += code;
    }
    const std::size_t sub = k % f.block / sub_block(f);
    const float d = x.d()[group];
    const float scaled = (block.scales[sub] * d) * static_cast<float>(isum);
    acc = acc + scaled;
    if (f.has_min()) {
      const float lifted = block.minima[sub] * (d * static_cast<float>(xsum));
      acc = acc + lifted;
    }
  }
  // A block's later groups beyond the columns add +0, which turns a -0 sum into +0.
  return w.cols % f.block != 0 && f.block > kGroup ? acc + 0.0f : acc;
}

float defined_float(std::span<const float> w, std::span<const float> x) {
  float lanes[16] = {};
  for (std::size_t k = 0; k < (w.size() + 15) / 16 * 16; ++k) {
    const float product = k < w.size() ? w[k] * x[k] : 0.0f;
    lanes[k % 16] = lanes[k % 16] + product;
  }
  for (std::size_t width = 8; width != 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lanes[j] = lanes[j] + lanes[j + width];
  }
  return lanes[0];
}

class MatmulTest : public testing::TestWithParam<std::size_t> {};

TEST_P(MatmulTest, ScalarIsTheDefinition) {
  const Format& f = kFormats[GetParam()];
  const Kernels& scalar = *find_kernels("scalar");
  for (const Values kind : kAllValues) {
    for (const std::uint32_t cols : shapes_of(f)) {
      const Weights w = make_weights(f, 17, cols, 5);
      const std::uint32_t n = 3;
      const std::vector<float> x = make_values(kind, std::size_t{n} * cols, 6);
      const std::vector<float> y = multiply(scalar, w, x, n);
      const Columns columns(scalar, x, cols, cols, n);
      std::vector<float> row(cols);
      for (std::uint32_t r = 0; r < w.rows; ++r) {
        dequantize_row(f, std::span(w.row_major).subspan(r * row_bytes(f, cols), row_bytes(f, cols)), row);
        for (std::uint32_t c = 0; c < n; ++c) {
          const float expected = f.quantized() ? defined_quantized(w, r, columns, c)
                                               : defined_float(row, std::span(x).subspan(c * cols, cols));
          ASSERT_EQ(std::bit_cast<std::uint32_t>(y[c * w.rows + r]), std::bit_cast<std::uint32_t>(expected))
              << "row " << r << " column " << c << " of " << cols << " kind " << static_cast<int>(kind);
        }
      }
    }
  }
}

// Bounds, e = 2^-24 the unit roundoff of float.
// Quantized: an activation is off by at most half a code, and by the rounding of d, of the inverse and of x * inverse
// (3e relative to at most 127 codes): |x - d q| <= d (1/2 + 127 * 4e). A term (scale * d) * isum carries 2 roundings, a
// sum of n terms at most n on each: (n + 2) e of the sum of magnitudes, with d |q| <= |x| + d.
// Float: n = ceil(cols / 16) + 4 additions and one product on each term.
TEST_P(MatmulTest, AgreesWithDoublePrecision) {
  const Format& f = kFormats[GetParam()];
  const Kernels& scalar = *find_kernels("scalar");
  for (const std::uint32_t cols : {f.block * 5u, 172u, 1024u}) {
    const Weights w = make_weights(f, 33, cols, 7);
    const std::vector<float> x = make_values(Values::random, cols, 8);
    const std::vector<float> y = multiply(scalar, w, x, 1);
    const Columns columns(scalar, x, cols, cols, 1);
    BlockValues block;
    std::vector<float> row(cols);
    for (std::uint32_t r = 0; r < w.rows; ++r) {
      const std::byte* const bytes = w.row_major.data() + r * row_bytes(f, cols);
      dequantize_row(f, {bytes, static_cast<std::size_t>(row_bytes(f, cols))}, row);
      double exact = 0;
      double magnitudes = 0;
      double rounding_of_x = 0;
      for (std::uint32_t k = 0; k < cols; ++k) {
        double weight = static_cast<double>(row[k]);
        double largest = std::fabs(weight);
        double d = 0;
        if (f.quantized()) {
          unpack_block(f, bytes + k / f.block * f.block_bytes, block);
          const std::size_t sub = k % f.block / sub_block(f);
          const double product =
              static_cast<double>(block.scales[sub]) * (level(f, block.codes[k % f.block]) - f.offset);
          const double minimum = f.has_min() ? static_cast<double>(block.minima[sub]) : 0.0;
          weight = product + minimum;
          largest = std::fabs(product) + std::fabs(minimum);
          d = static_cast<double>(columns.d()[k / kGroup]);
        }
        exact += weight * static_cast<double>(x[k]);
        magnitudes += largest * (std::fabs(static_cast<double>(x[k])) + d);
        rounding_of_x += std::fabs(weight) * d * (0.5 + 127 * 4 * kEpsilon);
      }
      const double sums = std::ceil(cols / static_cast<double>(std::min(sub_block(f), kGroup)));
      const double terms = f.quantized() ? (f.has_min() ? 2.0 : 1.0) * sums + 2 : (cols + 15) / 16 + 5;
      const double bound = rounding_of_x + 1.01 * terms * kEpsilon * magnitudes;
      EXPECT_LE(std::fabs(static_cast<double>(y[r]) - exact), bound) << "row " << r << " of " << cols << " columns";
    }
  }
}

TEST_P(MatmulTest, EveryInstructionSetGivesTheScalarBits) {
  const Format& f = kFormats[GetParam()];
  const Kernels& scalar = *find_kernels("scalar");
  for (const std::uint32_t rows : kRows) {
    for (const std::uint32_t cols : shapes_of(f)) {
      const Weights w = make_weights(f, rows, cols, rows * 1000 + cols);
      for (const Values kind : kAllValues) {
        const std::uint32_t most = std::ranges::max(kCounts);
        const std::vector<float> x = make_values(kind, std::size_t{most} * cols, cols);
        const std::vector<std::uint32_t> all = bits_of(multiply(scalar, w, x, most));
        for (const Kernels* const kernels : available_kernels()) {
          for (const std::uint32_t n : kCounts) {
            const std::vector<std::uint32_t> some(all.begin(), all.begin() + n * rows);
            ASSERT_EQ(bits_of(multiply(*kernels, w, x, n)), some)
                << kernels->isa << " " << f.name << " " << rows << " x " << cols << ", " << n << " columns, kind "
                << static_cast<int>(kind);
          }
        }
      }
    }
  }
}

// More columns than a span has: two of them, and what they leave.
TEST_P(MatmulTest, ManyColumnsHaveTheScalarBits) {
  constexpr std::uint32_t kMany = 128 + 8 + 7;
  constexpr std::uint32_t kManyRows = 2 * kTileRows + 3;
  const Format& f = kFormats[GetParam()];
  for (const std::uint32_t blocks : {1u, 9u}) {
    const std::uint32_t cols = blocks * f.block;
    const Weights w = make_weights(f, kManyRows, cols, cols);
    const std::vector<float> x = make_values(Values::random, std::size_t{kMany} * cols, cols);
    const std::vector<std::uint32_t> expected = bits_of(multiply(*find_kernels("scalar"), w, x, kMany));
    for (const Kernels* const kernels : available_kernels()) {
      ASSERT_EQ(bits_of(multiply(*kernels, w, x, kMany)), expected) << kernels->isa << " " << f.name << ", " << cols;
    }
  }
}

// Every code, scale and activation at its extreme: what could saturate in a narrow product does.
TEST_P(MatmulTest, ExtremeCodesDoNotSaturate) {
  const Format& f = kFormats[GetParam()];
  if (!f.quantized()) return;
  for (const int fill : {0x00, 0xff, 0x7f, 0x80, 0x81}) {
    Weights w = make_weights(f, 16, 4 * f.block, 1);
    const auto kept = [&](const Field& field, std::size_t byte) {
      return byte >= field.at && byte < field.at + scale_bytes(field.type);
    };
    for (std::size_t i = 0; i < w.row_major.size(); ++i) {
      const std::size_t byte = i % f.block_bytes;
      if (!kept(f.scale, byte) && !kept(f.minimum, byte)) w.row_major[i] = static_cast<std::byte>(fill);
    }
    for (std::size_t at = 0; at < w.row_major.size(); at += f.block_bytes) {
      set_scale(f, f32_to_f16(-0.3f), w.row_major.data() + at);
    }
    tile_strip(f, w.row_major, 16, w.cols, w.kernel);
    for (const float sign : {1.0f, -1.0f}) {
      const std::vector<float> x(w.cols, sign * 127.0f);
      std::vector<float> expected;
      for (std::uint32_t r = 0; r < 16; ++r) {
        expected.push_back(defined_quantized(w, r, Columns(*find_kernels("scalar"), x, w.cols, w.cols, 1), 0));
      }
      for (const Kernels* const kernels : available_kernels()) {
        EXPECT_EQ(bits_of(multiply(*kernels, w, x, 1)), bits_of(expected)) << kernels->isa << " byte " << fill;
      }
    }
  }
}

// A column under one scale: every code is within half of it, and products are the definition's on every instruction
// set.
TEST_P(MatmulTest, AColumnMayHaveOneScale) {
  const Format& f = kFormats[GetParam()];
  if (!f.quantized()) return;
  constexpr std::uint32_t kCount = 5;
  for (const std::uint32_t cols : shapes_of(f)) {
    const Weights w = make_weights(f, 17, cols, 5);
    const std::vector<float> x = make_values(Values::random, std::size_t{kCount} * cols, 6);
    for (const Kernels* const kernels : available_kernels()) {
      const Columns columns(*kernels, x, cols, cols, kCount, ScaleOf::column);
      std::vector<float> y(std::size_t{kCount} * w.rows);
      kernels->matmul[GetParam()](
          {w.kernel.data(), w.rows, cols, x.data(), cols, columns.view(), kCount, y.data(), w.rows});
      for (std::uint32_t c = 0; c < kCount; ++c) {
        const std::span<const float> column = std::span(x).subspan(std::size_t{c} * cols, cols);
        double largest = 0;
        for (const float v : column) largest = std::max(largest, std::abs(double{v}));
        for (std::uint32_t k = 0; k < cols; ++k) {
          const std::size_t group = columns.place(c, k / kGroup);
          ASSERT_EQ(columns.d()[group], static_cast<float>(largest) / 127.0f) << kernels->isa;
          const double back = double{columns.d()[group]} * columns.codes()[group * kGroup + k % kGroup];
          ASSERT_LE(std::abs(back - column[k]), largest / 254 * (1 + 1e-4)) << kernels->isa;
        }
        for (std::uint32_t r = 0; r < w.rows; ++r) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(y[c * w.rows + r]),
                    std::bit_cast<std::uint32_t>(defined_quantized(w, r, columns, c)))
              << kernels->isa;
        }
      }
    }
  }
}

// Inputs end where unreadable pages begin; weights begin at odd addresses.
TEST_P(MatmulTest, StaysInsideItsSpans) {
  const Format& f = kFormats[GetParam()];
  for (const std::uint32_t rows : {1u, 17u, 31u}) {
    for (const std::uint32_t cols : {1u, 33u, 172u, 256u}) {
      for (const std::uint32_t n : {1u, 3u, 8u, 16u}) {
        const Weights w = make_weights(f, rows, cols, 11);
        const std::vector<float> x = make_values(Values::random, std::size_t{n} * cols, 12);
        const std::vector<float> expected = multiply(*find_kernels("scalar"), w, x, n);
        const std::size_t padded = padded_cols(cols);
        const std::vector<float> untouched(expected.size(), -77.0f);
        const Guarded weights(w.kernel.size());
        const Guarded floats(x.size() * sizeof(float));
        const Guarded codes(n * padded);
        const Guarded d(n * padded / kGroup * sizeof(float));
        const Guarded sums(n * padded / kGroup * sizeof(float));
        const Guarded half_sums(n * padded / kGroup * 2 * sizeof(float));
        const Guarded y(expected.size() * sizeof(float));
        weights.fill(std::span(w.kernel));
        floats.fill(std::span(x));
        const QuantizedColumns xq{codes.as<std::int8_t>(), d.as<float>(), sums.as<float>(), half_sums.as<float>(),
                                  static_cast<std::uint32_t>(padded)};
        for (const Kernels* const kernels : available_kernels()) {
          y.fill(std::span(untouched));
          kernels->quantize_columns(floats.as<float>(), cols, cols, n, ScaleOf::group, xq);
          kernels->matmul[GetParam()](
              {weights.data(), rows, cols, floats.as<float>(), cols, xq, n, y.as<float>(), rows});
          EXPECT_EQ(bits_of({y.as<float>(), expected.size()}), bits_of(expected)) << kernels->isa;
        }
        std::vector<std::byte> shifted(1);
        shifted.insert(shifted.end(), w.kernel.begin(), w.kernel.end());
        for (const Kernels* const kernels : available_kernels()) {
          y.fill(std::span(untouched));
          kernels->matmul[GetParam()]({shifted.data() + 1, rows, cols, x.data(), cols, xq, n, y.as<float>(), rows});
          EXPECT_EQ(bits_of({y.as<float>(), expected.size()}), bits_of(expected)) << kernels->isa;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, MatmulTest, testing::Range<std::size_t>(0, kFormats.size()), [](const auto& info) {
  std::string name = "f_" + std::string(kFormats[info.param].name);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace qsf::test
