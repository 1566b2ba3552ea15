#include <gtest/gtest.h>

#include "tests/file/open_file.h"
#include "tests/file/small_file.h"

namespace qsf::test {
namespace {

/// Rows of a tensor in an opened file, as floats.
std::vector<float> weights_of(const OpenFile& f, const TensorEntry& t) {
  std::vector<std::byte> section;  // raw bytes from the section's start to the tensor's last segment
  for (std::size_t i = 0; i < f.segments.size(); ++i) {
    if (f.segments[i].stage == t.stage) section.insert(section.end(), f.raw[i].begin(), f.raw[i].end());
  }
  const Format& format = kFormats[static_cast<std::size_t>(format_index(t.format))];
  const std::size_t row = row_bytes(format, t.cols);
  const std::span<const std::byte> data = std::span<const std::byte>(section).subspan(t.raw_offset);
  std::vector<float> out(std::size_t{t.rows} * t.cols);
  for (std::uint32_t r = 0; r < t.rows; ++r) {
    const auto to = std::span(out).subspan(std::size_t{r} * t.cols, t.cols);
    if (t.layout == Layout::tiles) {
      dequantize_tile_row(format, data.subspan(r / kTileRows * kTileRows * row, kTileRows * row), r % kTileRows, to);
    } else {
      dequantize_row(format, data.subspan(r * row, row), to);
    }
  }
  return out;
}

/// What a format makes of the weights, row by row.
std::vector<float> rounded(FormatId id, std::span<const float> weights, std::uint32_t cols) {
  const Format& format = kFormats[static_cast<std::size_t>(format_index(id))];
  std::vector<float> out(weights.size());
  std::vector<std::byte> row(row_bytes(format, cols));
  for (std::size_t at = 0; at < weights.size(); at += cols) {
    quantize_row(format, weights.subspan(at, cols), row);
    dequantize_row(format, row, std::span(out).subspan(at, cols));
  }
  return out;
}

void expect_round_trip(const SmallOptions& options) {
  const SmallFile file = small_file(options);
  const Result<OpenFile> opened = open_file(file.bytes);
  ASSERT_TRUE(opened) << opened.error().sentence;
  EXPECT_EQ(opened->tensors.size(), file.weights.size());
  for (const TensorEntry& t : opened->tensors) {
    const auto& weights = file.weights.at({t.stage, t.role});
    const FormatId format = rule_of(t.role).matrix ? options.format : options.vectors;
    EXPECT_EQ(t.format, format);
    EXPECT_EQ(weights_of(*opened, t), rounded(format, weights, t.cols)) << role_name(t.role) << " of " << t.stage;
  }
}

TEST(RoundTrip, EveryFormatAndLayout) {
  for (const Format& format : kFormats) {
    for (const Layout layout : {Layout::rows, Layout::tiles}) {
      SCOPED_TRACE(format.name);
      SmallOptions options;
      options.format = format.id;
      options.layout = layout;
      options.dim = 80;  // partial blocks
      expect_round_trip(options);
    }
  }
}

TEST(RoundTrip, EveryShapeOfModel) {
  for (const bool tied : {true, false}) {
    for (const FormatId vectors : {FormatId::f32, FormatId::f16}) {
      SmallOptions options;
      options.tied = tied;
      options.vectors = vectors;
      options.biases = !tied;
      options.qk_norm = true;
      options.rope_divisors = {1, 2, 4, 8};
      options.tokenizer.assign(100, std::byte{7});
      expect_round_trip(options);
    }
  }
}

TEST(RoundTrip, EveryCompressionAndSegmentSize) {
  for (const Compression compression : {Compression::none, Compression::lz4, Compression::lz4hc, Compression::zstd}) {
    if (!can_decompress(compression)) continue;
    for (const std::uint32_t segment_bytes : {1u, 300u, 1u << 20, 0u}) {
      SmallOptions options;
      options.repetitive = true;
      options.compression = compression;
      options.segment_bytes = segment_bytes;
      expect_round_trip(options);
    }
  }
}

}  // namespace
}  // namespace qsf::test
