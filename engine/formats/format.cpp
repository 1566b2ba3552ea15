// Formats by name and number, and whole rows: row-major, and as tiles.
#include "formats/format.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/half.h"
#include "formats/tile.h"

namespace qsf {
namespace {

float weight(const Format& f, std::uint8_t code, float scale, float minimum) {
  const float product = scale * static_cast<float>(static_cast<int>(code) - static_cast<int>(f.offset));
  return f.has_min ? product + minimum : product;
}

void store_float(const Format& f, float x, std::byte* out) {
  switch (f.id) {
    case FormatId::f16:
      return store_le(out, f32_to_f16(std::clamp(x, -65504.0f, 65504.0f)));
    case FormatId::bf16:
      return store_le(out, f32_to_bf16(x));
    default:
      return store_le(out, x);
  }
}

float load_float(const Format& f, const std::byte* in) {
  switch (f.id) {
    case FormatId::f16:
      return f16_to_f32(load_le<f16>(in));
    case FormatId::bf16:
      return bf16_to_f32(load_le<bf16>(in));
    default:
      return load_le<float>(in);
  }
}

}  // namespace

const Format* find_format(FormatId id) {
  const int at = format_index(id);
  return at < 0 ? nullptr : &kFormats[static_cast<std::size_t>(at)];
}

const Format* find_format(std::string_view name) {
  const auto* const at = std::ranges::find(kFormats, name, &Format::name);
  return at == kFormats.end() ? nullptr : &*at;
}

void quantize_row(const Format& f, std::span<const float> weights, std::span<std::byte> out) {
  std::byte* to = out.data();
  if (!f.quantized()) {
    for (const float w : weights) {
      store_float(f, w, to);
      to += f.block_bytes;
    }
    return;
  }
  for (std::size_t k = 0; k < weights.size(); k += f.block, to += f.block_bytes) {
    const std::span<const float> left = weights.subspan(k);
    if (left.size() >= f.block) {
      quantize_block(f, left.first(f.block), to);
    } else {
      std::array<float, BlockValues{}.codes.size()> padded{};
      std::ranges::copy(left, padded.begin());
      quantize_block(f, std::span(padded).first(f.block), to);
    }
  }
}

void dequantize_row(const Format& f, std::span<const std::byte> in, std::span<float> out) {
  const std::byte* from = in.data();
  if (!f.quantized()) {
    for (float& x : out) {
      x = load_float(f, from);
      from += f.block_bytes;
    }
    return;
  }
  BlockValues values;
  for (std::size_t k = 0; k < out.size(); k += f.block, from += f.block_bytes) {
    unpack_block(f, from, values);
    const std::size_t n = std::min<std::size_t>(f.block, out.size() - k);
    for (std::size_t i = 0; i < n; ++i) out[k + i] = weight(f, values.codes[i], values.scale, values.minimum);
  }
}

void tile_strip(const Format& f, std::span<const std::byte> rows, std::uint32_t n_rows, std::uint32_t cols,
                std::span<std::byte> strip) {
  std::ranges::fill(strip, std::byte{0});
  const std::size_t n_blocks = (static_cast<std::size_t>(cols) + f.block - 1) / f.block;
  const auto planes = tile_planes(f);
  BlockValues values;
  for (std::size_t b = 0; b < n_blocks; ++b) {
    std::byte* const tile = strip.data() + b * tile_bytes(f);
    for (std::uint32_t row = 0; row < n_rows; ++row) {
      unpack_block(f, rows.data() + (row * n_blocks + b) * f.block_bytes, values);
      store_le(tile + 2 * row, values.scale_f16);
      if (f.has_min) store_le(tile + kTileScale + 2 * row, values.minimum_f16);
      for (const TilePlane& plane : planes) {
        if (plane.width == 0) break;
        const unsigned mask = (1u << plane.width) - 1;
        for (std::uint32_t k = 0; k < f.block; ++k) {
          const TileField field = tile_field(plane, row, k);
          tile[plane.offset + field.byte] |=
              static_cast<std::byte>((values.codes[k] >> plane.shift & mask) << field.shift);
        }
      }
    }
  }
}

void dequantize_tile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<float> out) {
  const auto planes = tile_planes(f);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const std::byte* const tile = strip.data() + k / f.block * tile_bytes(f);
    const float scale = f16_to_f32(load_le<f16>(tile + 2 * row));
    const float minimum = f.has_min ? f16_to_f32(load_le<f16>(tile + kTileScale + 2 * row)) : 0.0f;
    unsigned code = 0;
    for (const TilePlane& plane : planes) {
      if (plane.width == 0) break;
      const TileField field = tile_field(plane, row, static_cast<std::uint32_t>(k % f.block));
      const unsigned byte = std::to_integer<unsigned>(tile[plane.offset + field.byte]);
      code |= (byte >> field.shift & ((1u << plane.width) - 1)) << plane.shift;
    }
    out[k] = weight(f, static_cast<std::uint8_t>(code), scale, minimum);
  }
}

}  // namespace qsf
