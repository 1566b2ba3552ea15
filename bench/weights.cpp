#include "bench/weights.h"

#include <cstring>
#include <random>

#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

namespace qsf::bench {

std::vector<float> normal(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> out(n);
  for (float& v : out) v = distribution(engine);
  return out;
}

std::vector<std::byte> random_rows(const Format& f, std::uint32_t cols, std::uint64_t seed) {
  const auto row = static_cast<std::size_t>(row_bytes(f, cols));
  const std::vector<float> weights = normal(std::size_t{kTileRows} * cols, seed);
  std::vector<std::byte> rows(kTileRows * row);
  if (f.rounding == Rounding::elsewhere) {
    std::mt19937_64 engine(seed);
    for (std::byte& byte : rows) byte = static_cast<std::byte>(engine());
    for (std::size_t at = 0; at < rows.size(); at += f.block_bytes) {
      if (f.scale.type == Scale::f16) store_le(rows.data() + at + f.scale.at, f32_to_f16(0.01f));
    }
    return rows;
  }
  for (std::size_t r = 0; r < kTileRows; ++r) {
    quantize_row(f, std::span(weights).subspan(r * cols, cols), std::span(rows).subspan(r * row, row));
  }
  return rows;
}

std::vector<std::byte> random_strip(const Format& f, std::uint32_t cols, std::uint64_t seed) {
  std::vector<std::byte> rows = random_rows(f, cols, seed);
  if (!f.quantized()) return rows;
  std::vector<std::byte> strip(rows.size());
  tile_strip(f, rows, kTileRows, cols, strip);
  return strip;
}

void fill_with(std::span<const std::byte> strip, std::span<std::byte> memory) {
  for (; memory.size() >= strip.size(); memory = memory.subspan(strip.size())) {
    std::memcpy(memory.data(), strip.data(), strip.size());
  }
}

Activations::Activations(const Kernels& kernels, std::uint32_t cols, std::uint32_t n, std::uint64_t seed)
    : x(normal(std::size_t{cols} * n, seed)), cols_(cols), n_(n) {
  const std::size_t padded = std::size_t{padded_cols(cols)} * n;
  codes_.resize(padded);
  d_.resize(padded / kGroup);
  sums_.resize(padded / kGroup);
  half_sums_.resize(2 * padded / kGroup);
  MatmulArgs args{};
  into(args);
  kernels.quantize_columns(x.data(), cols, cols, n, ScaleOf::group, args.xq);
}

void Activations::into(MatmulArgs& args) {
  args.cols = cols_;
  args.x = x.data();
  args.x_stride = cols_;
  args.xq = {codes_.data(), d_.data(), sums_.data(), half_sums_.data(), padded_cols(cols_)};
  args.n = n_;
}

}  // namespace qsf::bench
