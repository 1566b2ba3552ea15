#include "bench/random_blocks.h"

#include <array>
#include <cmath>
#include <cstdlib>

#include "qsf/base/half.h"

namespace qsf::test {
namespace {

void random_bytes(Random& random, std::byte* at, std::size_t n) {
  for (std::size_t i = 0; i < n; i += sizeof(std::uint64_t)) {
    const std::uint64_t bits = random.next();
    std::memcpy(at + i, &bits, std::min(n - i, sizeof bits));
  }
}

void put_f16(std::byte* at, float value) {
  const std::uint16_t half = f32_to_f16(value);
  std::memcpy(at, &half, sizeof half);
}

/// The deviation of whole numbers that are equally likely in a range of n.
float spread(float n) { return std::sqrt((n * n - 1) / 12); }

/// The sum of four uniform numbers is near enough to normal.
void fill_f16(Random& random, float deviation, std::byte* block) {
  const std::uint64_t bits = random.next();
  float sum = -2;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(bits >> 16 * i & 0xffff) * 0x1p-16f;
  put_f16(block, sum * std::sqrt(3.0f) * deviation);
}

/// Types of one scale and codes that are centred by the type itself.
template <int kBytes, int kRange>
void fill_scaled(Random& random, float deviation, std::byte* block) {
  put_f16(block, deviation / spread(kRange));
  random_bytes(random, block + 2, kBytes - 2);
}

/// The 6-bit scales and minima of the eight sub-blocks are equal, so that the block's minimum centres all of them.
void fill_q4_k(Random& random, float deviation, std::byte* block) {
  constexpr float kMeanScale = 48;
  const float d = deviation / spread(16) / kMeanScale;
  put_f16(block, d);
  put_f16(block + 2, 7.5f * d);
  std::uint8_t six[12] = {};
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t scale = 33 + random.below(31);  // 33..63
    if (j < 4) {
      six[j] = six[j + 4] = static_cast<std::uint8_t>(scale);
    } else {
      six[j + 4] = static_cast<std::uint8_t>((scale & 15) * 17);
      six[j - 4] |= static_cast<std::uint8_t>(scale >> 4 << 6);
      six[j] |= static_cast<std::uint8_t>(scale >> 4 << 6);
    }
  }
  std::memcpy(block + 4, six, sizeof six);
  random_bytes(random, block + 16, 128);
}

void fill_q6_k(Random& random, float deviation, std::byte* block) {
  constexpr float kMeanScale = 96;
  random_bytes(random, block, 192);
  for (int j = 0; j < 16; ++j) {
    const auto scale = static_cast<int>(65 + random.below(63));  // 65..127
    block[192 + j] = static_cast<std::byte>(random.below(2) == 0 ? scale : -scale);
  }
  put_f16(block + 208, deviation / spread(64) / kMeanScale);
}

constexpr std::array kTypes{
    BlockType{GgmlType::f16, 1, 2, fill_f16},
    BlockType{GgmlType::q2_0, 64, 18, fill_scaled<18, 4>},
    BlockType{GgmlType::q4_0, 32, 18, fill_scaled<18, 16>},
    BlockType{GgmlType::q5_0, 32, 22, fill_scaled<22, 32>},
    BlockType{GgmlType::q8_0, 32, 34, fill_scaled<34, 256>},
    BlockType{GgmlType::q4_k, 256, 144, fill_q4_k},
    BlockType{GgmlType::q6_k, 256, 210, fill_q6_k},
};

}  // namespace

const BlockType& block_type(GgmlType type) {
  for (const BlockType& known : kTypes) {
    if (known.type == type) return known;
  }
  std::abort();
}

void fill_random(const BlockType& type, Random& random, float deviation, std::span<std::byte> out) {
  for (std::size_t at = 0; at < out.size(); at += type.bytes) type.fill(random, deviation, out.data() + at);
}

}  // namespace qsf::test
