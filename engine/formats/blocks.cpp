// Packing and unpacking of row-major blocks, from the declarations of the quantized formats.
#include "formats/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "formats/sub_scales.h"
#include "formats/tile.h"
#include "formats/trellis.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

// uses them
#include "formats/grids.inl"

namespace qsf {
namespace {

constexpr std::uint32_t plane_bytes(const Format& f, const Plane& plane) { return f.block * plane.width / 8u; }

constexpr bool declared_well(const Format& f) {
  if (!f.quantized()) return f.block == 1 && f.rounding == Rounding::none;
  std::uint32_t bytes = scale_bytes(f.scale.type) + scale_bytes(f.minimum.type) + sub_bytes(f.sub.kind);
  std::uint32_t bits = 0;
  for (const Plane& plane : f.planes) {
    bytes += plane_bytes(f, plane);
    bits += plane.width;
    if (!std::has_single_bit(plane.run)) return false;
  }
  if (f.packing == Packing::trits) {
    bytes += (f.block / kTileGroup + kTrits - 1) / kTrits * kTileGroup;
    bits = 2;
  }
  if (f.packing == Packing::trellis && f.offset != kTrellisOffset) return false;
  if ((f.grid != Grid::none) != (f.sub.kind == Sub::grid)) return false;
  if (f.grid != Grid::none) {
    return f.block == kGridSubs * sub_block(f) && f.offset == grids::kOffset && f.code_bits == kTrellisBits;
  }
  return f.block % kGroup == 0 && f.block <= kMaxBlock && f.block_bytes == bytes && f.code_bits == bits &&
         (f.minimum.type == Scale::none || f.minimum.type == Scale::f16) &&
         (f.sub.kind == Sub::none || f.block == sub_count(f.sub.kind) * sub_block(f));
}
static_assert(std::ranges::all_of(kFormats, declared_well));

// The position of a code: its byte, and its shift in that byte.
struct Spot {
  std::uint32_t byte;
  std::uint32_t shift;
};

/// The positions of a plane's codes. Runs and codes in a byte are powers of two.
class Spots {
 public:
  explicit Spots(const Plane& plane)
      : run_(static_cast<std::uint32_t>(std::countr_zero(plane.run))),
        in_byte_(static_cast<std::uint32_t>(std::countr_zero(8u / plane.width))),
        width_(static_cast<std::uint32_t>(std::countr_zero(plane.width))),
        flip_(plane.falling ? (1u << in_byte_) - 1 : 0) {}

  Spot operator[](std::uint32_t i) const {
    const std::uint32_t place = i >> run_ & ((1u << in_byte_) - 1);
    return {(i >> (run_ + in_byte_) << run_) + (i & ((1u << run_) - 1)), (place ^ flip_) << width_};
  }

 private:
  std::uint32_t run_, in_byte_, width_, flip_;
};

// The bytes and trits of tq1_0: 32 bytes of five runs, 16 of five, 4 of four.
Spot trit_of(std::uint32_t i) {
  if (i < 160) return {i % 32, i / 32};
  if (i < 240) return {32 + (i - 160) % 16, (i - 160) / 16};
  return {48 + (i - 240) % 4, (i - 240) / 4};
}
constexpr std::uint32_t kTritBytes = 52;

// Converts the bits of the planes to the code, and the code to the bits.
std::uint8_t recoded(const Format& f, std::uint8_t bits) {
  switch (f.packing) {
    case Packing::int8:
      return bits ^ 0x80;
    case Packing::sign_and_zero: {
      constexpr std::array<std::uint8_t, 4> kCodes{2, 0, 1, 1};  // positive, negative, zero
      return kCodes[bits];
    }
    default:
      return bits;
  }
}
std::uint8_t stored(const Format& f, std::uint8_t code) {
  constexpr std::array<std::uint8_t, 3> kBits{1, 2, 0};
  return f.packing == Packing::sign_and_zero ? kBits[code] : recoded(f, code);
}

float load_field(const Field& field, const std::byte* block) {
  switch (field.type) {
    case Scale::none:
      return 1.0f;
    case Scale::f16:
      return f16_to_f32(load_le<f16>(block + field.at));
    case Scale::f32:
      return load_le<float>(block + field.at);
    case Scale::exponent:
      return power_of_two(std::to_integer<std::uint32_t>(block[field.at]));
  }
  return 1.0f;
}

/// Calls of(grid), the grid as a type.
template <class F>
void with_grid(Grid grid, F of) {
  const auto as = [&]<Grid kGrid>() { of(std::integral_constant<Grid, kGrid>{}); };
  switch (grid) {
    case Grid::none:
      return;
    case Grid::iq1_s:
      return as.template operator()<Grid::iq1_s>();
    case Grid::iq1_m:
      return as.template operator()<Grid::iq1_m>();
    case Grid::iq2_xxs:
      return as.template operator()<Grid::iq2_xxs>();
    case Grid::iq2_xs:
      return as.template operator()<Grid::iq2_xs>();
    case Grid::iq2_s:
      return as.template operator()<Grid::iq2_s>();
    case Grid::iq3_xxs:
      return as.template operator()<Grid::iq3_xxs>();
    case Grid::iq3_s:
      return as.template operator()<Grid::iq3_s>();
  }
}

/// Returns a function that returns byte k of a block.
auto bytes_of(const std::byte* block) {
  return [block](std::size_t k) { return std::to_integer<std::uint32_t>(block[k]); };
}

void unpack_grid_scales(const Format& f, const std::byte* block, BlockValues& out) {
  with_grid(f.grid, [&](auto grid) {
    constexpr Grid kGrid = decltype(grid)::value;
    const auto scale = static_cast<f16>(grid_scale<kGrid>(bytes_of(block)));
    for (std::size_t j = 0; j < kGridSubs; ++j) {
      const auto sub = static_cast<float>(static_cast<int>(grid_sub<kGrid>(j, bytes_of(block))));
      out.scales[j] = kGridUnit<kGrid> * f16_to_f32(scale) * sub;
    }
  });
  out.minima.fill(0.0f);
}

void unpack_grid_codes(const Format& f, const std::byte* block, std::span<std::uint8_t> codes) {
  with_grid(f.grid, [&](auto grid) {
    constexpr Grid kGrid = decltype(grid)::value;
    for (std::size_t g = 0; g < f.block / 8u; ++g) {
      const auto eight = grid_eight<kGrid>(g, bytes_of(block));
      const std::uint64_t levels = with_bits<kGrid>(points_of<kGrid>(eight.point, eight.other), mask_of(eight.bits));
      for (std::size_t i = 0; i < 8; ++i) codes[8 * g + i] = static_cast<std::uint8_t>(levels >> 8 * i);
    }
  });
}

void unpack_e4m3(const Format& f, const std::byte* block, BlockValues& out) {
  const float scale = load_field(f.scale, block);
  for (std::uint32_t j = 0; j < f.block / sub_block(f); ++j) {
    out.scales[j] = scale * half_of_e4m3(std::to_integer<std::uint32_t>(block[f.sub.at + j]));
    out.minima[j] = 0.0f;
  }
}

template <Sub kKind>
void unpack_sub(const Format& f, const std::byte* block, BlockValues& out) {
  const float scale = load_field(f.scale, block);
  const float minimum = f.has_min() ? load_field(f.minimum, block) : 0.0f;
  const auto byte = [&](int k) { return std::to_integer<unsigned>(block[f.sub.at + k]); };
  for (std::uint32_t j = 0; j < f.block / sub_block(f); ++j) {
    const int packed = static_cast<int>(sub_scale<kKind>(static_cast<int>(j), byte));
    out.scales[j] = scale * static_cast<float>(packed - sub_bias(kKind));
    if constexpr (kKind == Sub::k2 || kKind == Sub::k4) {
      // GGML subtracts its minimum, so the sign is reversed here.
      out.minima[j] = -(minimum * static_cast<float>(sub_minimum<kKind>(static_cast<int>(j), byte)));
    } else {
      out.minima[j] = 0.0f;
    }
  }
}

}  // namespace

void unpack_scales(const Format& f, const std::byte* block, BlockValues& out) {
  switch (f.sub.kind) {
    case Sub::none:
      out.scales[0] = load_field(f.scale, block);
      out.minima[0] = f.has_min() ? load_field(f.minimum, block) : 0.0f;
      return;
    case Sub::k2:
      return unpack_sub<Sub::k2>(f, block, out);
    case Sub::k3:
      return unpack_sub<Sub::k3>(f, block, out);
    case Sub::k4:
      return unpack_sub<Sub::k4>(f, block, out);
    case Sub::k6:
      return unpack_sub<Sub::k6>(f, block, out);
    case Sub::x4:
      return unpack_sub<Sub::x4>(f, block, out);
    case Sub::e4m3:
      return unpack_e4m3(f, block, out);
    case Sub::grid:
      return unpack_grid_scales(f, block, out);
  }
}

void pack_scale(const Field& field, float value, std::byte* block) {
  if (field.type == Scale::f16) store_le(block + field.at, saturated_f16(value));
  if (field.type == Scale::f32) store_le(block + field.at, value);
  if (field.type == Scale::exponent) block[field.at] = static_cast<std::byte>(exponent_of(value));
}

void pack_sub_scale(const Format& f, std::uint32_t j, std::uint32_t scale, std::uint32_t minimum, std::byte* block) {
  std::byte* const at = block + f.sub.at;
  const auto put = [at](std::uint32_t k, std::uint32_t bits) { at[k] |= static_cast<std::byte>(bits); };
  switch (f.sub.kind) {
    case Sub::none:
    case Sub::e4m3:
    case Sub::grid:
      return;
    case Sub::k2:
      return put(j, scale | minimum << 4);
    case Sub::k3:
      put(j % 8, (scale & 15) << (j < 8 ? 0 : 4));
      return put(8 + j % 4, scale >> 4 << (2 * (j / 4)));
    case Sub::k4:
      if (j < 4) {
        put(j, scale);
        return put(j + 4, minimum);
      }
      put(j + 4, (scale & 15) | (minimum & 15) << 4);
      put(j - 4, scale >> 4 << 6);
      return put(j, minimum >> 4 << 6);
    case Sub::k6:
      return put(j, scale ^ 128);
    case Sub::x4:
      put(2 + j / 2, (scale & 15) << 4 * (j % 2));
      return put(j / 4, scale >> 4 << 2 * (j % 4));
  }
}

void pack_codes(const Format& f, std::span<const std::uint8_t> codes, std::byte* block) {
  if (f.packing == Packing::trits) {
    std::array<unsigned, kTritBytes> fractions{};
    constexpr std::array<unsigned, kTrits> kPowers{81, 27, 9, 3, 1};
    for (std::uint32_t i = 0; i < f.block; ++i) {
      const Spot spot = trit_of(i);
      fractions[spot.byte] += codes[i] * kPowers[spot.shift];
    }
    for (std::uint32_t k = 0; k < kTritBytes; ++k) block[k] = trit_byte(fractions[k]);
    return;
  }
  std::uint32_t shift = 0;
  for (const Plane& plane : f.planes) {
    if (plane.width == 0) break;
    const Spots spots(plane);
    for (std::uint32_t i = 0; i < f.block; ++i) {
      const Spot spot = spots[i];
      const unsigned bits = stored(f, codes[i]) >> shift & ((1u << plane.width) - 1);
      block[plane.at + spot.byte] |= static_cast<std::byte>(bits << spot.shift);
    }
    shift += plane.width;
  }
}

void unpack_codes(const Format& f, const std::byte* block, std::span<std::uint8_t> codes) {
  if (f.grid != Grid::none) return unpack_grid_codes(f, block, codes);
  if (f.packing == Packing::trits) {
    for (std::uint32_t i = 0; i < f.block; ++i) {
      const Spot spot = trit_of(i);
      codes[i] = trit(block[spot.byte], spot.shift);
    }
    return;
  }
  std::fill_n(codes.begin(), f.block, std::uint8_t{0});
  std::uint32_t shift = 0;
  for (const Plane& plane : f.planes) {
    if (plane.width == 0) break;
    const Spots spots(plane);
    const unsigned mask = (1u << plane.width) - 1;
    for (std::uint32_t i = 0; i < f.block; ++i) {
      const Spot spot = spots[i];
      const unsigned bits = std::to_integer<unsigned>(block[plane.at + spot.byte]) >> spot.shift & mask;
      codes[i] |= static_cast<std::uint8_t>(bits << shift);
    }
    shift += plane.width;
  }
  for (std::uint32_t i = 0; f.packing != Packing::plain && i < f.block; ++i) codes[i] = recoded(f, codes[i]);
}

void unpack_block(const Format& f, const std::byte* block, BlockValues& out) {
  unpack_scales(f, block, out);
  unpack_codes(f, block, out.codes);
  if (f.packing == Packing::trellis) trellis_levels(f.code_bits, std::span(out.codes).first(f.block));
}

}  // namespace qsf
