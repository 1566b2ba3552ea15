// Row-major blocks of the quantized formats, from their declarations: rounding, packing, unpacking.
#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/half.h"
#include "formats/format.h"

namespace qsf {
namespace {

constexpr float kLargestF16 = 65504.0f;

constexpr bool declared_well(const Format& f) {
  if (!f.quantized()) return f.block == 1 && f.order == CodeOrder::none && f.rounding == Rounding::none;
  const bool nibbles = f.order == CodeOrder::adjacent || f.order == CodeOrder::halves;
  return f.block % kGroup == 0 && f.block <= BlockValues{}.codes.size() &&
         f.block_bytes == (f.has_min ? 4 : 2) + f.block * f.code_bits / 8 &&
         ((f.code_bits == 4 && nibbles) || (f.code_bits == 8 && f.order == CodeOrder::bytes));
}
static_assert(std::ranges::all_of(kFormats, declared_well));

f16 saturated_f16(float x) { return f32_to_f16(std::clamp(x, -kLargestF16, kLargestF16)); }

// The integer nearest to v in [low, top], half to even; a NaN gives low. 1.5 * 2^23 added and taken rounds.
int nearest(float v, int low, int top) {
  if (!(v > static_cast<float>(low))) return low;
  if (v >= static_cast<float>(top)) return top;
  return static_cast<int>((v + 0x1.8p23f) - 0x1.8p23f);
}

float largest_magnitude(std::span<const float> weights) {
  float largest = 0.0f;
  for (const float w : weights) largest = std::max(largest, std::fabs(w));
  return largest;
}

void round_min_max(const Format& f, std::span<const float> weights, BlockValues& out) {
  const auto [low, high] = std::ranges::minmax(weights);
  const int top = (1 << f.code_bits) - 1;
  out.minimum_f16 = saturated_f16(low);
  out.scale_f16 = saturated_f16((high - low) / static_cast<float>(top));
  out.minimum = f16_to_f32(out.minimum_f16);
  out.scale = f16_to_f32(out.scale_f16);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const int code = out.scale == 0.0f ? 0 : nearest((weights[i] - out.minimum) / out.scale, 0, top);
    out.codes[i] = static_cast<std::uint8_t>(code);
  }
}

void round_symmetric(const Format&, std::span<const float> weights, BlockValues& out) {
  out.scale_f16 = saturated_f16(largest_magnitude(weights) / 127.0f);
  out.scale = f16_to_f32(out.scale_f16);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const int code = out.scale == 0.0f ? 0 : nearest(weights[i] / out.scale, -127, 127);
    out.codes[i] = static_cast<std::uint8_t>(128 + code);
  }
}

// quantize_row_q4_0_ref of ggml-quants.c, with the product and sum that a fused multiply-add would give.
void round_ggml_signed_max(const Format&, std::span<const float> weights, BlockValues& out) {
  float peak = 0.0f;
  for (const float w : weights) {
    if (std::fabs(w) > std::fabs(peak)) peak = w;
  }
  const float scale = peak / -8.0f;
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  out.scale_f16 = saturated_f16(scale);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double v = static_cast<double>(weights[i]) * static_cast<double>(inverse) + 8.5;
    out.codes[i] = !(v > 0.0) ? std::uint8_t{0} : v >= 15.0 ? std::uint8_t{15} : static_cast<std::uint8_t>(v);
  }
}

// quantize_row_q8_0_ref of ggml-quants.c.
void round_ggml_symmetric(const Format&, std::span<const float> weights, BlockValues& out) {
  const float scale = largest_magnitude(weights) / 127.0f;
  const float inverse = scale == 0.0f ? 0.0f : 1.0f / scale;
  out.scale_f16 = saturated_f16(scale);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float v = weights[i] * inverse;
    const float magnitude = std::fabs(v) < 127.0f ? std::fabs(v) : v != v ? 0.0f : 127.0f;
    auto code = static_cast<int>(magnitude);
    if (magnitude - static_cast<float>(code) >= 0.5f) ++code;
    out.codes[i] = static_cast<std::uint8_t>(128 + (v < 0.0f ? -code : code));
  }
}

// The position of element i's code: its byte after the scale and minimum, and its shift there.
struct Spot {
  std::uint32_t byte;
  std::uint32_t shift;
};

Spot spot_of(const Format& f, std::uint32_t i) {
  switch (f.order) {
    case CodeOrder::adjacent:
      return {i / 2, i % 2 * 4};
    case CodeOrder::halves:
      return {i % (f.block / 2u), i < f.block / 2u ? 0u : 4u};
    default:
      return {i, 0};
  }
}

std::uint8_t stored_flip(const Format& f) { return f.order == CodeOrder::bytes ? 0x80 : 0; }

void pack_block(const Format& f, const BlockValues& in, std::byte* out) {
  std::fill_n(out, f.block_bytes, std::byte{0});
  store_le(out, in.scale_f16);
  if (f.has_min) store_le(out + 2, in.minimum_f16);
  std::byte* const codes = out + (f.has_min ? 4 : 2);
  for (std::uint32_t i = 0; i < f.block; ++i) {
    const Spot spot = spot_of(f, i);
    codes[spot.byte] |= static_cast<std::byte>((in.codes[i] ^ stored_flip(f)) << spot.shift);
  }
}

}  // namespace

void quantize_block(const Format& f, std::span<const float> weights, std::byte* out) {
  BlockValues values{};
  switch (f.rounding) {
    case Rounding::none:
      return;
    case Rounding::min_max:
      round_min_max(f, weights, values);
      break;
    case Rounding::symmetric:
      round_symmetric(f, weights, values);
      break;
    case Rounding::ggml_signed_max:
      round_ggml_signed_max(f, weights, values);
      break;
    case Rounding::ggml_symmetric:
      round_ggml_symmetric(f, weights, values);
      break;
  }
  pack_block(f, values, out);
}

void unpack_block(const Format& f, const std::byte* block, BlockValues& out) {
  out.scale_f16 = load_le<std::uint16_t>(block);
  out.minimum_f16 = f.has_min ? load_le<std::uint16_t>(block + 2) : std::uint16_t{0};
  out.scale = f16_to_f32(out.scale_f16);
  out.minimum = f16_to_f32(out.minimum_f16);
  const std::byte* const codes = block + (f.has_min ? 4 : 2);
  const unsigned mask = (1u << f.code_bits) - 1;
  for (std::uint32_t i = 0; i < f.block; ++i) {
    const Spot spot = spot_of(f, i);
    const unsigned stored = std::to_integer<unsigned>(codes[spot.byte]) ^ stored_flip(f);
    out.codes[i] = static_cast<std::uint8_t>(stored >> spot.shift & mask);
  }
}

}  // namespace qsf
