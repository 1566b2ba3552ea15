#include "formats/numbers.h"

#include <algorithm>
#include <cmath>

#include "formats/blocks.h"
#include "formats/sub_scales.h"
#include "qsf/base/bytes.h"

namespace qsf {
namespace {

std::uint8_t code_of(const Format& f, const LevelTable& table, float l) {
  if (table.whole) return static_cast<std::uint8_t>(static_cast<int>(l) + f.offset);
  std::uint32_t k = 0;
  while (k + 1 < table.n && table.value[k] < l) ++k;
  return table.code[k];
}

}  // namespace

float stored_scale(const Format& f, float scale) {
  switch (f.scale.type) {
    case Scale::none:
      return 1.0f;
    case Scale::f16:
      return f16_to_f32(saturated_f16(scale));
    case Scale::f32:
      return std::clamp(scale, -0x1p120f, 0x1p120f);
    case Scale::exponent:
      return power_of_two(std::clamp<std::uint32_t>(exponent_of(std::max(std::fabs(scale), 0x1p-120f)), 2, 252));
  }
  return scale;
}

bool fit_scale(const Format& f, const ScaleSums& sums, Numbers& numbers) {
  const auto [aa, ab, bb, ae, be] = sums;
  const double determinant = aa * bb - ab * ab;
  if (f.has_min() && determinant > 1e-6 * aa * bb) {
    numbers.scale = stored_scale(f, numbers.scale + static_cast<float>((bb * ae - ab * be) / determinant));
    numbers.minimum =
        f16_to_f32(saturated_f16(numbers.minimum + static_cast<float>((aa * be - ab * ae) / determinant)));
  } else if (aa > 0) {
    numbers.scale = stored_scale(f, numbers.scale + static_cast<float>(ae / aa));
  }
  return !only_positive(f) || (numbers.scale >= 0 && numbers.minimum >= 0);
}

Numbers read_numbers(const Format& f, const std::byte* block) {
  BlockValues values;
  unpack_block(f, block, values);
  Numbers out;
  if (f.sub.kind == Sub::none) {
    out.scale = values.scales[0];
    out.minimum = values.minima[0];
  } else {
    // The products are exact, so that division returns the packed numbers. If the scale is zero, the packed numbers
    // have no effect.
    const auto packed = [](float product, float of) { return of == 0 ? 0 : static_cast<int>(product / of); };
    out.scale = f16_to_f32(load_le<f16>(block + f.scale.at));
    out.minimum = f.has_min() ? f16_to_f32(load_le<f16>(block + f.minimum.at)) : 0.0f;
    for (std::uint32_t j = 0; j < f.block / sub_block(f); ++j) {
      out.subs[j] = packed(values.scales[j], out.scale);
      out.sub_minima[j] = packed(-values.minima[j], out.minimum);
    }
  }
  for (std::uint32_t i = 0; i < f.block; ++i) out.levels[i] = static_cast<float>(level(f, values.codes[i]) - f.offset);
  if (f.packing == Packing::trellis) unpack_codes(f, block, out.codes);
  return out;
}

void write_numbers(const Format& f, const Numbers& numbers, std::byte* out) {
  std::fill_n(out, f.block_bytes, std::byte{0});
  pack_scale(f.scale, numbers.scale, out);
  pack_scale(f.minimum, numbers.minimum, out);
  for (std::uint32_t j = 0; f.sub.kind != Sub::none && j < f.block / sub_block(f); ++j) {
    pack_sub_scale(f, j, static_cast<std::uint32_t>(numbers.subs[j] + sub_bias(f.sub.kind)),
                   static_cast<std::uint32_t>(numbers.sub_minima[j]), out);
  }
  if (f.packing == Packing::trellis) return pack_codes(f, numbers.codes, out);
  const LevelTable& table = level_table(f);
  std::array<std::uint8_t, kMaxBlock> codes{};
  for (std::uint32_t i = 0; i < f.block; ++i) codes[i] = code_of(f, table, numbers.levels[i]);
  pack_codes(f, codes, out);
}

}  // namespace qsf
