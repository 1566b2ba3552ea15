#include "bench/separate.h"

#include <cstring>

#include "qsf/base/half.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace qsf::bench {
namespace {

constexpr int kLanes = 8;

/// Converts eight codes, the low four bits of eight bytes, to s * code - m.
[[gnu::target("avx2")]] inline void widen_eight(__m128i bytes, __m256 s, __m256 m, float* out) {
  const __m256 codes = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
  _mm256_storeu_ps(out, _mm256_sub_ps(_mm256_mul_ps(s, codes), m));
}

[[gnu::target("avx2")]] inline void widen_block(const std::byte* block, float* out) {
  std::uint16_t scales[2];
  std::uint8_t six[12];
  std::memcpy(scales, block, sizeof scales);
  std::memcpy(six, block + 4, sizeof six);
  const float d = f16_to_f32(scales[0]), d_min = f16_to_f32(scales[1]);
  const __m128i nibble = _mm_set1_epi8(15);
  for (int j = 0; j < 8; ++j) {
    const int scale = j < 4 ? six[j] & 63 : (six[j + 4] & 15) | (six[j - 4] >> 6 << 4);
    const int minimum = j < 4 ? six[j + 4] & 63 : (six[j + 4] >> 4) | (six[j] >> 6 << 4);
    const __m256 s = _mm256_set1_ps(d * static_cast<float>(scale));
    const __m256 m = _mm256_set1_ps(d_min * static_cast<float>(minimum));
    for (int half = 0; half < 2; ++half) {
      __m128i bytes;
      std::memcpy(&bytes, block + 16 + j / 2 * 32 + half * 16, sizeof bytes);
      bytes = _mm_and_si128(j % 2 == 0 ? bytes : _mm_srli_epi16(bytes, 4), nibble);
      widen_eight(bytes, s, m, out + j * 32 + half * 16);
      widen_eight(_mm_srli_si128(bytes, 8), s, m, out + j * 32 + half * 16 + kLanes);
    }
  }
}

[[gnu::target("avx2")]] inline float sum_of(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace

[[gnu::target("avx2")]] void separate_product(const std::byte* weights, std::uint32_t rows, std::uint32_t cols,
                                              const float* x, float* y) {
  alignas(64) float widened[kSeparateBlock];
  for (std::uint32_t r = 0; r < rows; ++r) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (std::uint32_t c = 0; c < cols; c += kSeparateBlock, weights += kSeparateBlockBytes) {
      widen_block(weights, widened);
      asm volatile("" ::: "memory");  // the compiler must write the buffer before reading it
      for (std::uint32_t i = 0; i < kSeparateBlock; i += 4 * kLanes) {
        for (std::uint32_t k = 0; k < 4; ++k) {
          const __m256 w = _mm256_load_ps(widened + i + k * kLanes);
          sums[k] = _mm256_add_ps(sums[k], _mm256_mul_ps(w, _mm256_loadu_ps(x + c + i + k * kLanes)));
        }
      }
    }
    y[r] = sum_of(_mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
  }
}

[[gnu::target("avx2")]] void widen_matrix(const std::byte* weights, std::size_t n_blocks, float* out) {
  for (std::size_t b = 0; b < n_blocks; ++b) {
    widen_block(weights + b * kSeparateBlockBytes, out + b * kSeparateBlock);
  }
}

}  // namespace qsf::bench

#else

namespace qsf::bench {
void separate_product(const std::byte*, std::uint32_t, std::uint32_t, const float*, float*) {}
void widen_matrix(const std::byte*, std::size_t, float*) {}
}  // namespace qsf::bench

#endif
