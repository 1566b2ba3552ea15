// GGUF's I2_S, whose layout only a tensor's size tells: each layout against a decoding written for it here.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "converter/readers/gguf/gguf.h"
#include "converter/support.h"
#include "qsf/base/half.h"
#include "qsf/formats/format.h"
#include "support/seeded.h"
#include "tests/support/error_of.h"

namespace qsf::test {
namespace {

using convert::TernaryLayout;

constexpr std::uint32_t kRows = 4, kCols = 256;

Bytes random_bytes(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  Bytes out(n);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.next());
  return out;
}

struct Read {
  std::vector<convert::LoadedTensor> tensors;
  std::vector<float> weights;  // of the first
};
/// The first tensor of a file as floats.
Result<Read> read(const GgufWriter& writer, TernaryLayout layout = TernaryLayout::automatic) {
  const Bytes file = writer.file();
  Result<convert::Gguf> gguf = convert::read_gguf(convert::input_of("x.gguf", file), layout);
  if (!gguf) return gguf.error();
  Read out;
  out.tensors = gguf->tensors;
  const convert::LoadedTensor& tensor = out.tensors[0];
  const Format& format = *find_format(tensor.format);
  const auto rows = static_cast<std::uint32_t>(tensor.shape[0]), cols = static_cast<std::uint32_t>(tensor.shape[1]);
  const std::size_t size = row_bytes(format, cols);
  Bytes bytes(rows * size), row(size);
  const Status all = tensor.rows_of(0, rows, bytes);
  if (!all) return all.error();
  EXPECT_FALSE(tensor.rows_of(0, 2, row));
  for (std::uint32_t r = 0; r < rows; ++r) {
    EXPECT_TRUE(tensor.rows_of(r, 1, row));
    EXPECT_EQ(std::memcmp(row.data(), &bytes[r * size], size), 0) << r;
    std::vector<float> values(cols);
    dequantize_row(format, row, values);
    out.weights.insert(out.weights.end(), values.begin(), values.end());
  }
  return out;
}

float code_value(unsigned code) {
  constexpr std::array kValues{-2.0f, -1.0f, 1.0f, 2.0f};
  return kValues[code];
}

TEST(Ternary, MicrosoftsHasOneScaleBehindTheCodes) {
  const Bytes codes = random_bytes(kRows * kCols / 4, 1);
  Bytes data = codes;
  put(data, 0.37f);
  data.resize(codes.size() + 32);
  GgufWriter writer;
  writer.tensor("t.weight", GgmlType::i2_s, {kCols, kRows}, data);
  writer.tensor("u.weight", GgmlType::f32, {8}, Bytes(32));
  for (const TernaryLayout layout : {TernaryLayout::automatic, TernaryLayout::microsoft}) {
    const Result<Read> tensor = read(writer, layout);
    ASSERT_TRUE(tensor) << tensor.error().sentence;
    for (std::size_t i = 0; i < tensor->weights.size(); ++i) {
      const std::size_t block = i / 128, within = i % 128;
      const auto byte = std::to_integer<unsigned>(codes[32 * block + within % 32]);
      const int code = static_cast<int>(byte >> (6 - 2 * (within / 32)) & 3);
      ASSERT_EQ(tensor->weights[i], 0.37f * static_cast<float>(code - 1)) << i;
    }
  }
  // The same bytes by an option: codes without a scale, and what is behind them is padding.
  const Result<Read> other = read(writer, TernaryLayout::qk256);
  ASSERT_TRUE(other) << other.error().sentence;
  EXPECT_EQ(other->weights[5], code_value(std::to_integer<unsigned>(codes[1]) >> 2 & 3));
  EXPECT_FALSE(read(writer, TernaryLayout::inline32));
  EXPECT_FALSE(read(writer, TernaryLayout::split32));
}

TEST(Ternary, Qk256HasNoScale) {
  constexpr std::uint32_t kNarrow = 200;  // rows are padded to whole blocks
  for (const std::uint32_t cols : {kCols, kNarrow}) {
    const Bytes codes = random_bytes(kRows * 64, 2);
    GgufWriter writer;
    writer.tensor("t.weight", GgmlType::i2_s, {cols, kRows}, codes);
    const Result<Read> tensor = read(writer);
    ASSERT_TRUE(tensor) << tensor.error().sentence;
    EXPECT_EQ(tensor->tensors[0].format, own_type(23));
    for (std::size_t i = 0; i < tensor->weights.size(); ++i) {
      const std::size_t at = i % cols;
      const auto byte = std::to_integer<unsigned>(codes[i / cols * 64 + at / 4]);
      ASSERT_EQ(tensor->weights[i], code_value(byte >> 2 * (at % 4) & 3)) << i;
    }
  }
}

TEST(Ternary, ScalesOf32WeightsBehindTheirCodes) {
  Bytes data = random_bytes(kRows * kCols / 32 * 10, 3);
  for (std::size_t b = 0; b < data.size(); b += 10) {
    const std::uint16_t half = f32_to_f16(0.01f * static_cast<float>(b));
    std::memcpy(&data[b + 8], &half, 2);
  }
  GgufWriter writer;
  writer.tensor("t.weight", GgmlType::i2_s, {kCols, kRows}, data);
  const Result<Read> tensor = read(writer);
  ASSERT_TRUE(tensor) << tensor.error().sentence;
  EXPECT_EQ(tensor->tensors[0].format, own_type(22));
  for (std::size_t i = 0; i < tensor->weights.size(); ++i) {
    const std::size_t block = i / 32 * 10;
    const auto byte = std::to_integer<unsigned>(data[block + i % 32 / 4]);
    const float scale = f16_to_f32(f32_to_f16(0.01f * static_cast<float>(block)));
    ASSERT_EQ(tensor->weights[i], scale * code_value(byte >> 2 * (i % 4) & 3)) << i;
  }
}

TEST(Ternary, ScalesOf32WeightsInATensorBesideThem) {
  constexpr std::uint32_t kBlocks = kRows * kCols / 32;
  const Bytes codes = random_bytes(kBlocks * 8, 4);
  for (const char* name : {"t.scale", "t.weight_scales", "t.weight.scale", "t_scale"}) {
    for (const GgmlType type : {GgmlType::f16, GgmlType::f32}) {
      const bool half = type == GgmlType::f16;
      Bytes scales;
      for (std::uint32_t i = 0; i < kBlocks; ++i) {
        const float scale = 0.1f * static_cast<float>(i + 1);
        half ? put(scales, f32_to_f16(scale)) : put(scales, scale);
      }
      GgufWriter writer;
      writer.tensor("t.weight", GgmlType::i2_s, {kCols, kRows}, codes);
      writer.tensor(name, type,
                    half ? std::vector<std::uint64_t>{kBlocks} : std::vector<std::uint64_t>{kCols / 32, kRows}, scales);
      const Result<Read> tensor = read(writer);
      ASSERT_TRUE(tensor) << tensor.error().sentence;
      EXPECT_EQ(tensor->tensors.size(), 1u) << name;
      EXPECT_EQ(tensor->tensors[0].format, half ? own_type(22) : FormatId::f32);
      for (std::size_t i = 0; i < tensor->weights.size(); ++i) {
        const auto byte = std::to_integer<unsigned>(codes[i / 4]);
        const float scale = 0.1f * static_cast<float>(i / 32 + 1);
        ASSERT_EQ(tensor->weights[i],
                  (half ? f16_to_f32(f32_to_f16(scale)) : scale) * code_value(byte >> 2 * (i % 4) & 3))
            << i;
      }
    }
  }
}

TEST(Ternary, SizesThatFitNothingAreRefused) {
  struct Case {
    std::uint32_t cols, bytes;
    std::uint64_t n_scales;  // 0: no such tensor
    const char* part;
  };
  for (const Case& c :
       {Case{kCols, kRows * kCols / 4 - 32, 0, "no known layout"}, Case{kCols, 3 * kRows * kCols, 0, "no known layout"},
        Case{kCols, kRows * kCols / 4, 5, "of another size"},
        Case{kCols + 4, kRows * kCols / 4, 5, "no known layout"}}) {
    GgufWriter writer;
    writer.tensor("t.weight", GgmlType::i2_s, {c.cols, kRows}, Bytes(c.bytes));
    if (c.n_scales != 0) writer.tensor("t.scale", GgmlType::f32, {c.n_scales}, Bytes(4 * c.n_scales));
    const Result<Read> tensor = read(writer);
    ASSERT_FALSE(tensor) << c.bytes;
    EXPECT_EQ(error_of(tensor).code, ErrorCode::bad_input);
    EXPECT_NE(std::strstr(error_of(tensor).sentence, c.part), nullptr) << tensor.error().sentence;
  }
  GgufWriter writer;
  Bytes data(kRows * kCols / 4);
  put(data, std::numeric_limits<float>::infinity());
  data.resize(data.size() + 28);
  writer.tensor("t.weight", GgmlType::i2_s, {kCols, kRows}, data);
  const Result<Read> tensor = read(writer);
  ASSERT_FALSE(tensor);
  EXPECT_NE(std::strstr(error_of(tensor).sentence, "has the scale inf"), nullptr) << tensor.error().sentence;
}

}  // namespace
}  // namespace qsf::test
