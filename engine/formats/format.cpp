// Formats by name and number, and whole rows, both row-major and as tiles.
#include "qsf/formats/format.h"

#include <algorithm>

#include "formats/blocks.h"
#include "formats/tile.h"
#include "formats/trellis.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

namespace qsf {
namespace {

float weight(const Format& f, const BlockValues& values, std::size_t i) {
  const std::size_t sub = i / sub_block(f);
  const float product = values.scales[sub] * static_cast<float>(level(f, values.codes[i]) - f.offset);
  return f.has_min() ? product + values.minima[sub] : product;
}

std::uint8_t tile_code(const Format& f, const std::byte* codes, std::uint32_t row, std::uint32_t k) {
  if (f.packing == Packing::trits) {
    const TileTrit at = tile_trit(row, k);
    return trit(codes[at.byte], at.index);
  }
  unsigned code = 0;
  for (const TilePlane& plane : tile_planes(f.code_bits, f.block)) {
    if (plane.width == 0) break;
    const TileField field = tile_field(plane, row, k);
    const unsigned byte = std::to_integer<unsigned>(codes[plane.offset + field.byte]);
    code |= (byte >> field.shift & ((1u << plane.width) - 1)) << plane.shift;
  }
  return static_cast<std::uint8_t>(code);
}

/// Copies the numbers of a row's block out of a tile.
void untile_numbers(const Format& f, const std::byte* tile, std::uint32_t row, std::byte* block) {
  for_each_number(f, [&](const TileNumbers& numbers) {
    for (std::size_t k = 0; k < numbers.n; ++k) {
      std::copy_n(tile + numbers.tile_at + (k * kTileRows + row) * numbers.width, numbers.width,
                  block + numbers.at + k * numbers.width);
    }
  });
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
      std::array<float, kMaxBlock> padded{};
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
    const std::size_t n = std::min<std::size_t>(f.block, out.size() - k), of = sub_block(f);
    for (std::size_t begin = 0, sub = 0; begin < n; begin += of, ++sub) {
      const std::size_t end = std::min(n, begin + of);
      const float scale = values.scales[sub], minimum = values.minima[sub];
      for (std::size_t i = begin; i < end; ++i) {
        const float product = scale * static_cast<float>(level(f, values.codes[i]) - f.offset);
        out[k + i] = f.has_min() ? product + minimum : product;
      }
    }
  }
}

void untile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  std::array<std::uint8_t, kMaxBlock> codes{};
  for (std::size_t b = 0; b < out.size() / f.block_bytes; ++b) {
    const std::byte* const tile = strip.data() + b * tile_bytes(f);
    std::byte* const block = out.data() + b * f.block_bytes;
    untile_numbers(f, tile, row, block);
    if (f.grid != Grid::none) continue;
    for (std::uint32_t i = 0; i < f.block; ++i) codes[i] = tile_code(f, tile + tile_codes_at(f), row, i);
    pack_codes(f, std::span(codes).first(f.block), block);
  }
}

void dequantize_tile_row(const Format& f, std::span<const std::byte> strip, std::uint32_t row, std::span<float> out) {
  BlockValues values;
  std::array<std::byte, kMaxBlockBytes> numbers{};  // a block without its codes, unless they are a grid's
  for (std::size_t k = 0; k < out.size(); k += f.block) {
    const std::byte* const tile = strip.data() + k / f.block * tile_bytes(f);
    untile_numbers(f, tile, row, numbers.data());
    unpack_scales(f, numbers.data(), values);
    const std::size_t n = std::min<std::size_t>(f.block, out.size() - k);
    if (f.grid != Grid::none) {
      unpack_codes(f, numbers.data(), values.codes);
    } else {
      for (std::uint32_t i = 0; i < f.block; ++i) values.codes[i] = tile_code(f, tile + tile_codes_at(f), row, i);
    }
    if (f.packing == Packing::trellis) trellis_levels(f.code_bits, std::span(values.codes).first(f.block));
    for (std::uint32_t i = 0; i < n; ++i) out[k + i] = weight(f, values, i);
  }
}

}  // namespace qsf
