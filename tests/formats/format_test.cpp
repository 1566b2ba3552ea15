// The declared formats: block layouts byte by byte, rounding, tiles against rows, and GGML's own vectors where they
// are.
#include "qsf/formats/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "formats/rows.h"
#include "formats/tile.h"
#include "qsf/base/half.h"
#include "tests/support/paths.h"

namespace qsf::test {
namespace {

std::uint16_t u16_at(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::uint16_t>(std::to_integer<int>(bytes[at]) | std::to_integer<int>(bytes[at + 1]) << 8);
}

TEST(FormatTest, FoundByNameAndNumber) {
  for (const Format& f : kFormats) {
    EXPECT_EQ(find_format(f.id), &f);
    EXPECT_EQ(find_format(f.name), &f);
    EXPECT_EQ(&kFormats[static_cast<std::size_t>(format_index(f.id))], &f);
  }
  EXPECT_EQ(find_format(FormatId::mixed), nullptr);
  EXPECT_EQ(find_format("5bit"), nullptr);
  EXPECT_EQ(format_index(FormatId::inherit), -1);
}

// 0, 1, ... 15 four times: minimum 0, scale 1, so that code i is i mod 16.
TEST(FormatTest, FourBitPairsNeighbours) {
  std::vector<float> weights(64);
  for (std::size_t i = 0; i < 64; ++i) weights[i] = static_cast<float>(i % 16);
  const std::vector<std::byte> block = quantized(format("4bit"), weights);
  ASSERT_EQ(block.size(), 36u);
  EXPECT_EQ(u16_at(block, 0), f32_to_f16(1.0f));
  EXPECT_EQ(u16_at(block, 2), 0);
  for (std::size_t j = 0; j < 32; ++j) {
    EXPECT_EQ(std::to_integer<std::size_t>(block[4 + j]), (2 * j) % 16 + 16 * ((2 * j + 1) % 16)) << j;
  }
  EXPECT_EQ(dequantized(format("4bit"), block, 64), weights);
}

TEST(FormatTest, EightBitIsInt8) {
  std::vector<float> weights(64, 0.0f);
  weights[0] = 127.0f;
  weights[1] = -127.0f;
  weights[2] = 2.5f;  // half to even
  weights[3] = -3.5f;
  const std::vector<std::byte> block = quantized(format("8bit"), weights);
  ASSERT_EQ(block.size(), 66u);
  EXPECT_EQ(u16_at(block, 0), f32_to_f16(1.0f));
  const int expected[] = {127, -127, 2, -4, 0};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(static_cast<std::int8_t>(block[2 + i]), expected[i]);
}

// A block of GGML's q4_0 written by hand: d = -0.5, element j in the low nibble of byte j, j + 16 in the high.
TEST(FormatTest, GgmlQ40SplitsHalves) {
  std::vector<float> weights(32);
  for (std::size_t i = 0; i < 32; ++i) weights[i] = -0.5f * (static_cast<float>(i / 2) - 8.0f);
  std::vector<std::byte> block(18);
  block[0] = std::byte{0x00};
  block[1] = std::byte{0xb8};
  for (std::size_t j = 0; j < 16; ++j) block[2 + j] = static_cast<std::byte>(j / 2 | (j / 2 + 8) << 4);
  EXPECT_EQ(dequantized(format("q4_0"), block, 32), weights);
  EXPECT_EQ(quantized(format("q4_0"), weights), block);
}

TEST(FormatTest, GgmlQ80RoundsHalfAway) {
  std::vector<float> weights(32, 0.0f);
  weights[0] = -127.0f;
  weights[1] = 2.5f;
  weights[2] = -3.5f;
  weights[31] = 0.49999997f;
  const std::vector<std::byte> block = quantized(format("q8_0"), weights);
  ASSERT_EQ(block.size(), 34u);
  EXPECT_EQ(static_cast<std::int8_t>(block[2]), -127);
  EXPECT_EQ(static_cast<std::int8_t>(block[3]), 3);
  EXPECT_EQ(static_cast<std::int8_t>(block[4]), -4);
  EXPECT_EQ(static_cast<std::int8_t>(block[33]), 0);
}

TEST(FormatTest, ConstantAndZeroBlocks) {
  for (const Format& f : kFormats) {
    if (f.rounding == Rounding::fixed || !rounds(f)) continue;  // has no scale to fit
    for (const float value : {0.0f, 0.5f, -0.25f}) {
      if (f.packing == Packing::trellis && value != 0) continue;  // not every path of levels is there
      const std::vector<float> weights(f.block, value);
      const std::vector<float> back = dequantized(f, quantized(f, weights), f.block);
      for (const float w : back) EXPECT_NEAR(w, value, std::fabs(value) * 0x1p-10) << f.name;
    }
  }
}

TEST(FormatTest, ValuesBeyondHalfFloatsSaturate) {
  for (const Format& f : kFormats) {
    if (!rounds(f)) continue;
    for (const float huge : {3e38f, 1e10f, std::numeric_limits<float>::infinity()}) {
      if (f.id == FormatId::f32 || f.id == FormatId::bf16) continue;
      std::vector<float> weights(f.block, 1.0f);
      weights[0] = huge;
      weights[f.block - 1u] = -huge;
      for (const float w : dequantized(f, quantized(f, weights), f.block)) EXPECT_TRUE(std::isfinite(w)) << f.name;
    }
    // Not allowed, but no undefined behaviour either (a sanitizer would say).
    quantized(f, std::vector<float>(f.block, std::numeric_limits<float>::quiet_NaN()));
    quantized(f, std::vector<float>(f.block, 1e-45f));
  }
}

TEST(FormatTest, FloatsRoundHalfToEven) {
  const std::vector<float> weights{1.0f, 1.00048828125f, 65504.0f, 1e-8f, -2.0f};
  const std::vector<std::byte> half = quantized(format("f16"), weights);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(u16_at(half, 2 * i), f32_to_f16(weights[i]));
  const std::vector<std::byte> brain = quantized(format("bf16"), weights);
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(u16_at(brain, 2 * i), f32_to_bf16(weights[i]));
  EXPECT_EQ(dequantized(format("f32"), quantized(format("f32"), weights), weights.size()), weights);
}

TEST(FormatTest, PartialBlocksAreWhole) {
  for (const Format& f : kFormats) {
    if (!rounds(f)) continue;
    const std::vector<float> weights = random_weights(172, 4);
    EXPECT_EQ(row_bytes(f, 172), (172u + f.block - 1) / f.block * f.block_bytes);
    std::vector<float> padded = weights;
    padded.resize((172u + f.block - 1) / f.block * f.block);
    EXPECT_EQ(quantized(f, weights), quantized(f, padded)) << f.name;
  }
}

// The tile, drawn by hand for three formats: byte 4r + c of the g-th 64 is row r, column 4g + c of 8-bit codes; 4-bit
// codes have columns 8k..8k+3 in the low and 8k+4..8k+7 in the high nibbles; q6_k has its 16 bytes of sub-scales, each
// of 16 rows, behind the scales, its low four bits as 4-bit codes and its high two in a plane of 64 bytes to 16
// columns.
TEST(TileTest, BytesAreWhereTheHeaderSays) {
  for (const char* name : {"8bit", "4bit", "q6_k"}) {
    const Format& f = format(name);
    const std::uint32_t cols = 2 * f.block;
    const std::size_t row_size = row_bytes(f, cols);
    Random random(6);
    std::vector<std::byte> rows(16 * row_size);
    for (std::byte& byte : rows) byte = static_cast<std::byte>(random.next());
    std::vector<std::byte> strip(16 * row_size);
    tile_strip(f, rows, 16, cols, strip);
    BlockValues block;
    for (std::uint32_t r = 0; r < 16; ++r) {
      for (std::uint32_t b = 0; b < 2; ++b) {
        const std::span<const std::byte> row = std::span(rows).subspan(r * row_size + b * f.block_bytes, f.block_bytes);
        unpack_block(f, row.data(), block);
        const std::span<const std::byte> tile = std::span(strip).subspan(b * 16 * f.block_bytes, 16 * f.block_bytes);
        const auto at = [&](std::size_t i) { return std::to_integer<int>(tile[i]); };
        EXPECT_EQ(u16_at(tile, 2 * r), u16_at(row, f.scale.at));
        if (f.has_min()) {
          EXPECT_EQ(u16_at(tile, 32 + 2 * r), u16_at(row, 2));
        }
        for (std::uint32_t k = 0; k < f.block; ++k) {
          const std::uint32_t within = 4 * r + k % 4;
          int code = 0;
          if (f.code_bits == 8) {
            code = at(32 + k / 4 * 64 + within);
          } else {
            const std::size_t codes = f.code_bits == 4 ? 64 : 32 + 256;
            code = at(codes + k / 8 * 64 + within) >> (k % 8 < 4 ? 0 : 4) & 15;
          }
          if (f.code_bits == 6) {
            code |= (at(32 + 256 + 16 * 128 + k / 16 * 64 + within) >> (k % 16 / 4 * 2) & 3) << 4;
            if (k < 16) {
              EXPECT_EQ(at(32 + 16 * k + r), std::to_integer<int>(row[192 + k]));
            }
          }
          ASSERT_EQ(code, block.codes[k]) << f.name << " row " << r << " column " << k;
        }
      }
    }
  }
}

/// Bytes whose scales are finite in formats that nothing here rounds to.
std::vector<std::byte> any_blocks(std::size_t n, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 0x3f);
  return bytes;
}

TEST(TileTest, RowsComeBack) {
  for (const Format& f : kFormats) {
    if (!f.quantized()) continue;
    for (const std::uint32_t cols : {std::uint32_t{f.block}, 172u, 320u}) {
      for (const std::uint32_t n_rows : {1u, 7u, 16u}) {
        const std::size_t row_size = row_bytes(f, cols);
        std::vector<std::byte> rows;
        for (std::uint32_t r = 0; r < n_rows; ++r) {
          const std::vector<std::byte> row =
              rounds(f) ? quantized(f, random_weights(cols, r)) : any_blocks(row_size, r);
          rows.insert(rows.end(), row.begin(), row.end());
        }
        std::vector<std::byte> strip(tensor_bytes(f, Layout::tiles, n_rows, cols), std::byte{0xff});
        ASSERT_EQ(strip.size(), 16 * row_size);
        tile_strip(f, rows, n_rows, cols, strip);
        std::vector<float> back(cols);
        for (std::uint32_t r = 0; r < 16; ++r) {
          dequantize_tile_row(f, strip, r, back);
          if (r < n_rows) {
            EXPECT_EQ(back, dequantized(f, std::span(rows).subspan(r * row_size, row_size), cols)) << f.name;
          } else if (f.scale.type != Scale::none) {
            for (const float w : back) EXPECT_EQ(w, 0.0f) << f.name;
          }
        }
      }
    }
  }
}

// Planes of every width: every (row, column, bit) has a place of its own, and none is left over.
TEST(TileTest, PlanesOfEveryWidthFillTheTile) {
  constexpr std::uint32_t kBlock = 64;
  for (std::uint32_t bits = 1; bits <= 8; ++bits) {
    std::vector<int> used(16 * kBlock * bits, 0);
    std::uint32_t width = 0;
    for (const TilePlane& plane : tile_planes(bits, kBlock)) {
      EXPECT_EQ(plane.shift, plane.width != 0 ? width : 0);
      width += plane.width;
      for (std::uint32_t r = 0; plane.width != 0 && r < 16; ++r) {
        for (std::uint32_t k = 0; k < kBlock; ++k) {
          const TileField field = tile_field(plane, r, k);
          for (std::uint32_t bit = 0; bit < plane.width; ++bit) {
            ++used.at((plane.offset + field.byte) * 8 + field.shift + bit);
          }
        }
      }
    }
    EXPECT_EQ(width, bits);
    for (std::size_t i = 0; i < used.size(); ++i) ASSERT_EQ(used[i], 1) << bits << " bits, bit " << i;
  }
}

template <class T>
std::vector<T> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<T> values(std::filesystem::file_size(path) / sizeof(T));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

// GGML's own blocks and the values its reference reads from them: the project's few, and the many where they are.
TEST(GgmlTest, DequantizesToTheReference) {
  const std::filesystem::path own = source_dir() + "/tests/data/ggml-blocks";
  const std::filesystem::path shared = source_dir() + "/../shared/data/derived/quant-vectors";
  for (const auto& folder : {own, shared}) {
    if (folder == shared && !std::filesystem::exists(folder)) continue;
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".q") continue;
      std::string name = entry.path().stem().string();
      std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
      const Format* const f = find_format(name);
      if (f == nullptr) continue;
      ++files;
      const auto blocks = read_file<std::byte>(entry.path());
      const auto values = read_file<float>(std::filesystem::path(entry.path()).replace_extension(".f32"));
      ASSERT_EQ(row_bytes(*f, values.size()), blocks.size());
      const std::vector<float> back = dequantized(*f, blocks, values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]), std::bit_cast<std::uint32_t>(values[i])) << name << " " << i;
      }
    }
    EXPECT_GE(files, 14u) << folder;
  }
}

// The simple types round as GGML's reference does, bit for bit.
TEST(GgmlTest, QuantizesAsTheReference) {
  const std::filesystem::path folder = source_dir() + "/../shared/data/derived/quant-vectors";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the extra test data is not here: " << folder;
  for (const auto* name : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"}) {
    const bool ternary = name[0] == 'T';
    const auto input = read_file<float>(folder / (ternary ? "input_ternary_40x1024.f32" : "input_40x1024.f32"));
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(std::tolower(c)); });
    const Format& f = format(lower);
    const auto blocks = read_file<std::byte>(folder / (std::string(name) + ".q"));
    const std::vector<std::byte> ours = quantized(f, input);
    std::size_t different_blocks = 0;
    for (std::size_t at = 0; at < blocks.size(); at += f.block_bytes) {
      different_blocks += !std::equal(ours.begin() + at, ours.begin() + at + f.block_bytes, blocks.begin() + at);
    }
    EXPECT_EQ(different_blocks, 0u) << name << " of " << blocks.size() / f.block_bytes;
  }
}

}  // namespace
}  // namespace qsf::test
