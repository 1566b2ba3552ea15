#include "converter/types/iq.h"

#include <array>
#include <cstdint>

#include "converter/types/iq_books.h"
#include "qsf/base/bytes.h"
#include "qsf/base/half.h"

namespace qsf::convert {
namespace {

using namespace iq;

constexpr unsigned kGroups = 32;  // of 8 weights in a block
constexpr unsigned kHalf = 4;

unsigned byte_at(const std::byte* at) { return std::to_integer<unsigned>(*at); }
float f16_at(const std::byte* at) { return f16_to_f32(load_le<f16>(at)); }
unsigned nibble(const std::byte* bytes, unsigned i) { return byte_at(bytes + i / 2) >> 4 * (i % 2) & 15; }

float with_sign(float value, unsigned signs, unsigned i) { return (signs >> i & 1) != 0 ? -value : value; }

/// Writes 8 weights from a point with 2 bits each.
void put_point(unsigned point, unsigned signs, float scale, float* out) {
  for (unsigned i = 0; i < 8; ++i) out[i] = with_sign(scale * kLevels2[point >> 2 * i & 3], signs, i);
}

/// Writes 8 weights from two points with 3 bits each.
void put_points(unsigned first, unsigned second, const std::array<float, 8>& levels, unsigned signs, float scale,
                float* out) {
  for (unsigned i = 0; i < kHalf; ++i) {
    out[i] = with_sign(scale * levels[first >> 3 * i & 7], signs, i);
    out[kHalf + i] = with_sign(scale * levels[second >> 3 * i & 7], signs, kHalf + i);
  }
}

/// Writes 8 weights of -1, 0 and 1, moved up or down by an eighth.
void put_moved_point(unsigned point, bool down, float scale, float* out) {
  const float by = down ? -kMoved : kMoved;
  for (unsigned i = 0; i < 8; ++i) out[i] = scale * (kLevels1[point >> 2 * i & 3] + by);
}

}  // namespace

// A scale; then for each 32 weights four indices, four groups of seven signs and a 4-bit sub-scale.
bool iq2_xxs(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const std::byte* const at = block + 2 + g / 4 * 8;
    const auto signs = load_le<std::uint32_t>(at + 4);
    const float sub = scale * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
    put_point(kIq2Xxs[byte_at(at + g % 4)], eight_signs(signs >> 7 * (g % 4)), sub, out + 8 * g);
  }
  return true;
}

// A scale; 32 codes with nine bits of an index and seven signs; sub-scales of 16 weights.
bool iq2_xs(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const unsigned code = load_le<std::uint16_t>(block + 2 + 2 * g);
    const float sub = scale * (0.5f + static_cast<float>(nibble(block + 66, g / 2))) * 0.25f;
    put_point(kIq2Xs[code & 511], eight_signs(code >> 9), sub, out + 8 * g);
  }
  return true;
}

// A scale; the low bytes of 32 indices; their signs; two more bits of each; sub-scales of 16 weights.
bool iq2_s(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const unsigned high = byte_at(block + 66 + g / 4) >> 2 * (g % 4) & 3;
    const float sub = scale * (0.5f + static_cast<float>(nibble(block + 74, g / 2))) * 0.25f;
    put_point(kIq2S[byte_at(block + 2 + g) | high << 8], byte_at(block + 34 + g), sub, out + 8 * g);
  }
  return true;
}

// A scale; 64 indices of four weights; for each 32 weights four groups of seven signs and a sub-scale.
bool iq3_xxs(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const std::byte* const codes = block + 2 + 2 * g;
    const auto signs = load_le<std::uint32_t>(block + 66 + g / 4 * 4);
    const float sub = scale * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
    put_points(kIq3Xxs[byte_at(codes)], kIq3Xxs[byte_at(codes + 1)], kLevels3Xxs, eight_signs(signs >> 7 * (g % 4)),
               sub, out + 8 * g);
  }
  return true;
}

// A scale; the low bytes of 64 indices; a ninth bit of each; signs; sub-scales of 32 weights.
bool iq3_s(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const std::byte* const codes = block + 2 + 2 * g;
    const unsigned high = byte_at(block + 66 + g / 4) >> 2 * (g % 4);
    const float sub = scale * static_cast<float>(1 + 2 * nibble(block + 106, g / 4));
    put_points(kIq3S[byte_at(codes) | (high & 1) << 8], kIq3S[byte_at(codes + 1) | (high >> 1 & 1) << 8], kLevels3S,
               byte_at(block + 74 + g), sub, out + 8 * g);
  }
  return true;
}

// A scale; the low bytes of 32 indices; for each 32 weights four times three more bits, a 3-bit sub-scale and a
// direction.
bool iq1_s(const std::byte* block, float* out) {
  const float scale = f16_at(block);
  for (unsigned g = 0; g < kGroups; ++g) {
    const unsigned more = load_le<std::uint16_t>(block + 34 + g / 4 * 2);
    const unsigned index = byte_at(block + 2 + g) | (more >> 3 * (g % 4) & 7) << 8;
    const float sub = scale * static_cast<float>(2 * (more >> 12 & 7) + 1);
    put_moved_point(kIq1[index], more >> 15 != 0, sub, out + 8 * g);
  }
  return true;
}

// The low bytes of 32 indices; three more bits of each and a direction; four times four 3-bit sub-scales of 16 weights,
// each followed by four bits of the scale.
bool iq1_m(const std::byte* block, float* out) {
  const std::byte* const scales = block + 48;
  unsigned bits = 0;
  for (unsigned i = 0; i < 4; ++i) {
    bits |= static_cast<unsigned>(load_le<std::uint16_t>(scales + 2 * i)) >> 12 << 4 * i;
  }
  const float scale = f16_to_f32(static_cast<f16>(bits));
  for (unsigned g = 0; g < kGroups; ++g) {
    const unsigned more = nibble(block + 32, g);
    const unsigned index = byte_at(block + g) | (more & 7) << 8;
    const unsigned sub_scales = load_le<std::uint16_t>(scales + g / 8 * 2);
    const float sub = scale * static_cast<float>(2 * (sub_scales >> 3 * (g / 2 % 4) & 7) + 1);
    put_moved_point(kIq1[index], (more & 8) != 0, sub, out + 8 * g);
  }
  return true;
}

}  // namespace qsf::convert
